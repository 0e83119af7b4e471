import { countOf, flagOf, printResult, textOf } from "@devplat/cli";
import { text } from "node:stream/consumers";
import type { z } from "zod";
import { noteLine, printJson, printLine } from "@devplat/base/terminal";
import type { mintedTokenSchema, tokenSchema } from "../admin-api/tokens.ts";
import { SvcError } from "../errors.ts";
import { callApi, listCommand, tokenPath } from "./api-client.ts";
import type { RunCommand } from "./command.ts";

const PATH = "/api/tokens";

type Token = z.output<typeof tokenSchema>;
type MintedToken = z.output<typeof mintedTokenSchema>;

/** Prints the token alone, so that a script can take it; what is known of it goes to standard error. */
export const create: RunCommand = async ({ positionals: repositories, options }) => {
  const minted = await callApi<MintedToken>(
    "POST",
    flagOf(options, "no-check") ? `${PATH}?check=false` : PATH,
    {
      repositories,
      type: flagOf(options, "agent") ? "agent" : undefined,
      scopes: textOf(options, "scopes"),
      duration: textOf(options, "duration"),
      app_id: textOf(options, "app"),
      installation: textOf(options, "installation"),
      description: textOf(options, "description"),
      session_id: textOf(options, "session"),
      requests_per_minute: countOf(options, "rate"),
      ip_allow: textOf(options, "ip-allow")?.split(","),
    },
  );
  if (flagOf(options, "json")) {
    printJson(minted);
    return;
  }
  noteLine(`token ${minted.id}, good until ${minted.expires_at ?? "it is revoked"}`);
  printLine(minted.token);
};

export const list = listCommand<Token>(PATH, {
  ID: ({ id }) => id,
  TYPE: ({ type }) => type,
  TOKEN: (each) => `${each.token_start}…`,
  USER: ({ username }) => username,
  REPOSITORIES: ({ repositories }) => repositories.join(","),
  SCOPES: scopesText,
  EXPIRES: (each) => each.expires_at ?? "never",
  USES: (each) => String(each.use_count),
});

export const show: RunCommand = async ({ positionals: [id = ""], options }) => {
  const token = await callApi<Token>("GET", tokenPath(PATH, id));
  printResult(options, token, () => {
    for (const [name, value] of factsOf(token)) {
      if (value !== null) printLine(`${name.padEnd(13)} ${value}`);
    }
  });
};

function factsOf(token: Token): readonly (readonly [name: string, value: string | null])[] {
  return [
    ["id", token.id],
    ["token", `${token.token_start}…`],
    ["type", token.type],
    ["made by", token.username],
    ["repositories", token.repositories.join(", ")],
    ["scopes", scopesText(token)],
    ["installation", token.installation],
    ["description", token.description],
    ["session", token.session_id],
    ["addresses", token.ip_allow.join(", ") || null],
    ["rate", token.requests_per_minute === null ? null : `${token.requests_per_minute} requests a minute`],
    ["created", token.created_at],
    ["expires", token.expires_at ?? "never"],
    ["last used", token.last_used_at === null ? "never" : `${token.last_used_at} from ${token.last_ip}`],
    ["uses", String(token.use_count)],
  ];
}

/** By id; or by value, which is read from standard input, where no list of processes shows it. */
export const revoke: RunCommand = async ({ positionals: [id], options }) => {
  const byValue = flagOf(options, "value");
  if ((id === undefined) !== byValue) throw new SvcError("usage", "Give the id of a token, or --value");
  if (id === undefined) {
    await callApi("POST", `${PATH}/revoke`, { token: await valueFromInput() });
    printResult(options, { outcome: "revoked" }, () => printLine("revoked"));
    return;
  }
  // A value on the command line is known to every process of this machine, and goes into the shell's history.
  await callApi("DELETE", tokenPath(PATH, id, "Give its id, or the value on standard input with --value."));
  printResult(options, { outcome: "revoked", id }, () => printLine(`revoked ${id}`));
};

async function valueFromInput(): Promise<string> {
  const value = (await text(process.stdin)).trim();
  if (value === "")
    throw new SvcError("usage", "--value reads the token from standard input, which is empty");
  return value;
}

function scopesText({ scopes }: Pick<Token, "scopes">): string {
  return Object.entries(scopes)
    .map(([resource, level]) => `${resource}:${level}`)
    .join(",");
}
