import { messageOf } from "@devplat/base";
import { checkPath } from "@devplat/secret-store";
import { z } from "zod";

/** Path of a secret below the user's root. */
export const secretPath = z.string().superRefine((path, context) => {
  try {
    checkPath(path);
  } catch (error) {
    context.addIssue({ code: "custom", message: messageOf(error) });
  }
});
