import type { HttpMethod } from "@devplat/http-client";
import { readFile } from "node:fs/promises";
import { text as readAll } from "node:stream/consumers";
import { systemCode } from "@devplat/base";
import { stringMember } from "@devplat/base/json-member";
import { noteLine, visible } from "@devplat/base/terminal";
import { holdsTokenPrefix } from "../credentials/token-format.ts";
import { SvcError } from "../errors.ts";
import { printResult, printTable } from "@devplat/cli";
import type { RunCommand } from "./command.ts";
import { exchange } from "./api-exchange.ts";
import { credentialsPath, readCredentials } from "./credentials.ts";

const DEFAULT_URL = "http://localhost:8080";

/** Where to call, and as whom. */
export interface Target {
  readonly base: URL;
  readonly token: string;
}

/**
 * Calls the administration API, by default of the service at {@link serviceAddress} with the token of {@link serviceToken}.
 *
 * @returns the parsed response, of the type that the API documents; undefined if it has no body
 * @throws SvcError `usage` (no token), `server_unreachable`, `server_refused` with the server's own message
 */
export async function callApi<T>(
  method: HttpMethod,
  path: string,
  body?: unknown,
  target?: Target,
): Promise<T> {
  return (await call(method, path, body, target)).body as T;
}

/**
 * A command that prints a list of the API, all pages of it, as a table.
 *
 * @param columns text of each column, by its heading
 * @param note gives a line about the items for standard error
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type of the items
export function listCommand<T>(
  path: string,
  columns: Readonly<Record<string, (item: T) => string>>,
  note?: (items: readonly T[]) => string | undefined,
): RunCommand {
  return async ({ options }) => {
    const found = await callApiList<T>(path);
    const rows = found.map((item) => Object.values(columns).map((textOf) => textOf(item)));
    printResult(options, found, () => printTable(Object.keys(columns), rows));
    const text = note?.(found);
    if (text !== undefined) noteLine(text);
  };
}

async function callApiList<T>(path: string): Promise<readonly T[]> {
  const items: T[] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const { body, link }: ApiAnswer = await call("GET", next);
    if (Array.isArray(body)) items.push(...(body as T[]));
    const [, following] = /<([^>]*)>; rel="next"/.exec(link ?? "") ?? [];
    const address = following === undefined ? null : URL.parse(following);
    // The service may write its own name into the link. It is reached from here at SVC_URL.
    next = address === null ? undefined : address.pathname + address.search;
  }
  return items;
}

interface ApiAnswer {
  readonly body: unknown;
  readonly link: string | undefined;
}

async function call(method: HttpMethod, path: string, body?: unknown, target?: Target): Promise<ApiAnswer> {
  const base = target?.base ?? serviceAddress();
  const token = target?.token ?? serviceToken(base).token;
  const content = body === undefined ? undefined : JSON.stringify(body);
  const { status, text, link } = await exchange(new URL(path, base), method, content, {
    authorization: `Bearer ${token}`,
    ...(content === undefined ? {} : { "content-type": "application/json" }),
  });
  const parsed = parse(text);
  // A response of this API is JSON, or empty.
  if (parsed === undefined && text !== "") throw foreign(base, status);
  if (status >= 200 && status < 300) return { body: parsed, link };
  const [detail, hint] = [stringMember(parsed, "detail"), stringMember(parsed, "hint")];
  if (detail === undefined) throw foreign(base, status);
  // Text of another machine must not begin a line that looks like one of this program.
  throw new SvcError("server_refused", `${base.host} answered ${status}: ${visible(detail)}`, {
    ...(hint !== undefined && { hint: visible(hint) }),
  });
}

/** Posts a form to an OAuth endpoint. Returns the JSON response, also of a refusal. @throws SvcError `server_unreachable` */
export async function postForm(
  url: URL,
  form: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, unknown>>> {
  const content = new URLSearchParams(form).toString();
  const type = "application/x-www-form-urlencoded";
  const { text } = await exchange(url, "POST", content, { "content-type": type });
  const parsed = parse(text);
  return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : {};
}

/**
 * The token of the commands: `SVC_TOKEN`, or the session that `auth login` kept for the service.
 *
 * @throws SvcError `usage`: neither is there
 */
export function serviceToken(base: URL): { readonly token: string; readonly source: string } {
  const given = process.env["SVC_TOKEN"];
  if (given !== undefined && given !== "") {
    if (/^[\w.-]+$/.test(given)) return { token: given, source: "SVC_TOKEN" };
    throw new SvcError("usage", "SVC_TOKEN is not a session or administration token");
  }
  const kept = readCredentials().services[base.origin];
  if (kept !== undefined) return { token: kept.token, source: credentialsPath() };
  throw new SvcError("usage", `Not signed in to ${base.origin}`, {
    hint: "Run 'svc auth login', or set SVC_TOKEN to a session or administration token.",
  });
}

/**
 * The service that the commands talk to: as given, `SVC_URL`, the one that was signed in to last, or this machine's.
 *
 * @throws SvcError `usage`
 */
export function serviceAddress(given?: string): URL {
  const named = given ?? (process.env["SVC_URL"] || readCredentials().current);
  const base = URL.parse(named ?? DEFAULT_URL);
  if (base === null || !["http:", "https:"].includes(base.protocol)) {
    const meant = `https://${named}`;
    throw new SvcError(
      "usage",
      `The service's address (SVC_URL) is not an http:// or https:// address: ${named}`,
      {
        ...(URL.canParse(meant) && base?.host === "" && { hint: `Did you mean ${meant}, or http://?` }),
      },
    );
  }
  return base;
}

/**
 * The API path of one token. The value of a token is refused before it is sent, because it would be written to access logs.
 *
 * @param collection `/api/tokens` or `/api/admin-tokens`
 * @throws SvcError `usage`, without the value
 */
export function tokenPath(collection: string, id: string, hint = "Give its id."): string {
  if (holdsTokenPrefix(id))
    throw new SvcError("usage", "The argument is a token's value, not its id", { hint });
  return `${collection}/${encodeURIComponent(id)}`;
}

/** Text of a file that the command line names; `-` is standard input. @throws SvcError `usage` */
export async function readInput(file: string): Promise<string> {
  if (file === "-") return readAll(process.stdin);
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const reason = systemCode(error) ?? "unknown error";
    throw new SvcError("usage", `${file} cannot be read (${reason})`, { cause: error });
  }
}

function foreign(base: URL, status: number): SvcError {
  const message = `${base.host} answered ${status}, and not as this service does`;
  return new SvcError("server_refused", message, { hint: "Is SVC_URL the address of svc?" });
}

function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
