import { visible } from "@devplat/base/terminal";
import { SvcError } from "../errors.ts";
import { exchange, type ApiMethod } from "./api-exchange.ts";
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
 * @returns the parsed answer; undefined where it has no body
 * @throws SvcError `usage` (no token), `server_unreachable`, `server_refused` with the server's own message
 */
export async function callApi(
  method: ApiMethod,
  path: string,
  body?: unknown,
  target?: Target,
): Promise<unknown> {
  return (await call(method, path, body, target)).body;
}

/** All pages of a list, which come one after another. @throws as {@link callApi} */
export async function callApiList(path: string): Promise<readonly unknown[]> {
  const items: unknown[] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const { body, link }: ApiAnswer = await call("GET", next);
    if (Array.isArray(body)) items.push(...(body as unknown[]));
    const [, following] = /<([^>]*)>; rel="next"/.exec(link ?? "") ?? [];
    const address = following === undefined ? null : URL.parse(following);
    // Of the service's own name for itself only the path counts: SVC_URL is where it is reached from here.
    next = address === null ? undefined : address.pathname + address.search;
  }
  return items;
}

interface ApiAnswer {
  readonly body: unknown;
  readonly link: string | undefined;
}

async function call(method: ApiMethod, path: string, body?: unknown, target?: Target): Promise<ApiAnswer> {
  const base = target?.base ?? serviceAddress();
  const token = target?.token ?? serviceToken(base).token;
  const content = body === undefined ? undefined : JSON.stringify(body);
  const { status, text, link } = await exchange(new URL(path, base), method, content, {
    authorization: `Bearer ${token}`,
    ...(content === undefined ? {} : { "content-type": "application/json" }),
  });
  const parsed = parse(text);
  // An answer of this API is JSON, or nothing at all.
  if (parsed === undefined && text !== "") throw foreign(base, status);
  if (status >= 200 && status < 300) return { body: parsed, link };
  const problem = (typeof parsed === "object" && parsed !== null ? parsed : {}) as {
    detail?: unknown;
    hint?: unknown;
  };
  if (typeof problem.detail !== "string") throw foreign(base, status);
  // Words of another machine: they must not begin a line that looks like one of this program.
  const message = `${base.host} answered ${status}: ${visible(problem.detail)}`;
  throw new SvcError(
    "server_refused",
    message,
    typeof problem.hint === "string" ? { hint: visible(problem.hint) } : {},
  );
}

/** Posts a form, as OAuth endpoints want it; their JSON answer, also that of a refusal. @throws SvcError `server_unreachable` */
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
