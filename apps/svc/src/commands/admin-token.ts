import { flagOf, printResult, printTable, textOf } from "@devplat/cli";
import type { z } from "zod";
import { noteLine, printJson, printLine } from "@devplat/base/terminal";
import type { adminTokenSchema, newAdminTokenSchema } from "../admin-api/admin-tokens.ts";
import { callApi } from "./api-client.ts";
import type { RunCommand } from "./command.ts";
import { tokenPath } from "./token-path.ts";

const PATH = "/api/admin-tokens";

/** Prints the token alone, so that a script can take it; what is known of it goes to standard error. */
export const create: RunCommand = async ({ positionals: [name], options }) => {
  const duration = textOf(options, "duration");
  const made = (await callApi("POST", PATH, { name, duration })) as z.output<typeof newAdminTokenSchema>;
  if (flagOf(options, "json")) {
    printJson(made);
    return;
  }
  noteLine(`administration token ${made.id}, good until ${made.expires_at}`);
  printLine(made.token);
};

export const list: RunCommand = async ({ options }) => {
  const found = (await callApi("GET", PATH)) as z.output<typeof adminTokenSchema>[];
  printResult(options, found, () =>
    printTable(
      ["ID", "TOKEN", "NAME", "EXPIRES", "LAST USED"],
      found.map((each) => [
        each.id,
        `${each.token_start}…`,
        each.name,
        each.expires_at,
        each.last_used_at ?? "never",
      ]),
    ),
  );
};

export const revoke: RunCommand = async ({ positionals: [id = ""], options }) => {
  const withTokens = flagOf(options, "revoke-tokens");
  await callApi("DELETE", tokenPath(PATH, id) + (withTokens ? "?tokens=revoke" : ""));
  printResult(options, { outcome: "revoked", id, tokens_revoked: withTokens }, () =>
    printLine(`revoked ${id}${withTokens ? ", and the tokens made with it" : ""}`),
  );
};
