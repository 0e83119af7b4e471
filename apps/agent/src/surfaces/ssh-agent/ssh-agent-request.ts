import { z } from "zod";

/*
 * Bodies of requests to the SSH agent of the JSON API.
 */

/** Longest name and passphrase, in characters. */
const MAX_TEXT_CHARS = 1024;

const passphrase = z.string().min(1).max(MAX_TEXT_CHARS);

export const unlockBody = z.strictObject({
  name: z.string().min(1).max(MAX_TEXT_CHARS).describe("Comment, path or fingerprint of the key"),
  passphrase: passphrase.optional().describe("Without it the key is only looked for"),
});

export const answerBody = z.union([
  z.strictObject({ confirmed: z.boolean().describe("False refuses, also to give a passphrase") }),
  z.strictObject({ passphrase }),
]);
