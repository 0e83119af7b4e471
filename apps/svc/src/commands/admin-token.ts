import type { z } from "zod";
import { noteLine, printJson, printLine } from "@devplat/base/terminal";
import type { adminTokenSchema, newAdminTokenSchema } from "../admin-api/admin-tokens.ts";
import { callApi } from "./api-client.ts";
import { printTable } from "./table.ts";

const PATH = "/api/admin-tokens";

/** Prints the token alone, so that a script can take it; what is known of it goes to standard error. */
export async function createAdminToken(
  name: string,
  options: { readonly duration: string; readonly json?: boolean },
): Promise<void> {
  const made = (await callApi("POST", PATH, { name, duration: options.duration })) as z.output<
    typeof newAdminTokenSchema
  >;
  if (options.json === true) {
    printJson(made);
    return;
  }
  noteLine(`administration token ${made.id}, good until ${made.expires_at}`);
  printLine(made.token);
}

export async function listAdminTokens(json: boolean): Promise<void> {
  const found = (await callApi("GET", PATH)) as z.output<typeof adminTokenSchema>[];
  if (json) {
    printJson(found);
    return;
  }
  printTable(
    ["ID", "TOKEN", "NAME", "EXPIRES", "LAST USED"],
    found.map((each) => [
      each.id,
      `${each.token_start}…`,
      each.name,
      each.expires_at,
      each.last_used_at ?? "never",
    ]),
  );
}

/** @param withTokens whether the tokens that were made with it end, too */
export async function revokeAdminToken(id: string, withTokens: boolean): Promise<void> {
  await callApi("DELETE", `${PATH}/${encodeURIComponent(id)}${withTokens ? "?tokens=revoke" : ""}`);
  printLine(`revoked ${id}${withTokens ? ", and the tokens made with it" : ""}`);
}
