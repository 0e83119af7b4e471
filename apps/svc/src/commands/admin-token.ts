import { flagOf, printResult, textOf } from "@devplat/cli";
import type { z } from "zod";
import { noteLine, printJson, printLine } from "@devplat/base/terminal";
import type { adminTokenSchema, newAdminTokenSchema } from "../admin-api/admin-tokens.ts";
import { callApi, listCommand, tokenPath } from "./api-client.ts";
import type { RunCommand } from "./command.ts";

const PATH = "/api/admin-tokens";

/** Prints the token alone, so that a script can take it; what is known of it goes to standard error. */
export const create: RunCommand = async ({ positionals: [name], options }) => {
  const duration = textOf(options, "duration");
  const made = await callApi<z.output<typeof newAdminTokenSchema>>("POST", PATH, { name, duration });
  if (flagOf(options, "json")) {
    printJson(made);
    return;
  }
  noteLine(`administration token ${made.id}, good until ${made.expires_at}`);
  printLine(made.token);
};

export const list = listCommand<z.output<typeof adminTokenSchema>>(PATH, {
  ID: ({ id }) => id,
  TOKEN: (each) => `${each.token_start}…`,
  NAME: ({ name }) => name,
  EXPIRES: (each) => each.expires_at,
  "LAST USED": (each) => each.last_used_at ?? "never",
});

export const revoke: RunCommand = async ({ positionals: [id = ""], options }) => {
  const withTokens = flagOf(options, "revoke-tokens");
  await callApi("DELETE", tokenPath(PATH, id) + (withTokens ? "?tokens=revoke" : ""));
  printResult(options, { outcome: "revoked", id, tokens_revoked: withTokens }, () =>
    printLine(`revoked ${id}${withTokens ? ", and the tokens made with it" : ""}`),
  );
};
