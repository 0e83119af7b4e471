import type { Secret } from "@devplat/base";
import { z } from "zod";
import { created, type OperationResponse } from "./operation.ts";

/** Field with the value of a new token. */
export const tokenValueField = z.string().meta({ description: "The secret; it is not shown again" });
/** Field with the part of a token that lists show. */
export const tokenStartField = z.string().meta({ description: "The first 12 characters" });

/** The response to the creation of a token. No other response has its value. @param collection address of all tokens */
export function createdToken(
  collection: string,
  token: Secret,
  view: { readonly id: string },
): OperationResponse {
  return created(`${collection}/${view.id}`, { body: { token: token.reveal(), ...view } });
}
