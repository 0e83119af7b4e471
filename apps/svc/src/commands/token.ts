import { text } from "node:stream/consumers";
import type { z } from "zod";
import { noteLine, printJson, printLine } from "@devplat/base/terminal";
import type { mintedTokenSchema, tokenSchema } from "../admin-api/tokens.ts";
import { SvcError } from "../errors.ts";
import { holdsTokenPrefix } from "../credentials/token-format.ts";
import { callApi, callApiList } from "./api-client.ts";
import { printTable } from "./table.ts";

const PATH = "/api/tokens";

type Token = z.output<typeof tokenSchema>;

export interface CreateOptions {
  readonly scopes: string;
  readonly duration: string;
  readonly description?: string;
  /** `agent` instead of `proxy`. */
  readonly agent?: boolean;
  readonly app?: string;
  readonly installation?: string;
  /** The caller's own label for the run that it is for. */
  readonly session?: string;
  /** By comma. */
  readonly ipAllow?: string;
  /** Requests a minute. */
  readonly rate?: number;
  /** False with `--no-check`. */
  readonly check: boolean;
  readonly json?: boolean;
}

/** Prints the token alone, so that a script can take it; what is known of it goes to standard error. */
export async function createToken(repositories: readonly string[], options: CreateOptions): Promise<void> {
  const minted = (await callApi("POST", options.check ? PATH : `${PATH}?check=false`, {
    repositories,
    scopes: options.scopes,
    duration: options.duration,
    ...(options.agent === true ? { type: "agent" } : {}),
    ...(options.app === undefined ? {} : { app_id: options.app }),
    ...(options.installation === undefined ? {} : { installation: options.installation }),
    ...(options.description === undefined ? {} : { description: options.description }),
    ...(options.session === undefined ? {} : { session_id: options.session }),
    ...(options.rate === undefined ? {} : { requests_per_minute: options.rate }),
    ...(options.ipAllow === undefined ? {} : { ip_allow: options.ipAllow.split(",") }),
  })) as z.output<typeof mintedTokenSchema>;
  if (options.json === true) {
    printJson(minted);
    return;
  }
  noteLine(`token ${minted.id}, good until ${minted.expires_at ?? "it is revoked"}`);
  printLine(minted.token);
}

export async function listTokens(json: boolean): Promise<void> {
  const found = (await callApiList(PATH)) as Token[];
  if (json) {
    printJson(found);
    return;
  }
  printTable(
    ["ID", "TYPE", "TOKEN", "USER", "REPOSITORIES", "SCOPES", "EXPIRES", "USES"],
    found.map((each) => [
      each.id,
      each.type,
      `${each.token_start}…`,
      each.username,
      each.repositories.join(","),
      scopesText(each),
      each.expires_at ?? "never",
      String(each.use_count),
    ]),
  );
}

export async function showToken(id: string, json: boolean): Promise<void> {
  const token = (await callApi("GET", `${PATH}/${encodeURIComponent(id)}`)) as Token;
  if (json) {
    printJson(token);
    return;
  }
  const facts: [string, string | null][] = [
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
  for (const [name, value] of facts) {
    if (value !== null) printLine(`${name.padEnd(13)} ${value}`);
  }
}

/** By id; or by value, which is read from standard input, where no list of processes shows it. */
export async function revokeToken(id: string | undefined, byValue: boolean): Promise<void> {
  if ((id === undefined) !== byValue) throw new SvcError("usage", "Give the id of a token, or --value");
  if (id === undefined) {
    await callApi("POST", `${PATH}/revoke`, { token: await valueFromInput() });
    printLine("revoked");
    return;
  }
  // A value on the command line is known to every process of this machine, and goes into the shell's history.
  if (holdsTokenPrefix(id)) {
    throw new SvcError(
      "usage",
      "That is a token's value: give its id, or the value on standard input with --value",
    );
  }
  await callApi("DELETE", `${PATH}/${encodeURIComponent(id)}`);
  printLine(`revoked ${id}`);
}

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
