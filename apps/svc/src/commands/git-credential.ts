import { mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { writeAtomically } from "@devplat/base";
import { flagOf, textOf } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import { BRAND } from "../brand.ts";
import { SvcError } from "../errors.ts";
import { splitRepository } from "../repository-name.ts";
import type { RunCommand } from "./command.ts";
import { callApi, serviceAddress } from "./api-client.ts";
import { attributeList, credentialAttributes } from "./credential-attributes.ts";

/** Characters of a request of git's; it sends a few short lines. */
const MAX_REQUEST_CHARACTERS = 64 * 1024;
/** Milliseconds before its end from which a kept token is not handed out any more: a clone may wait in a queue. */
const LEAST_LIFE_MS = 2 * 60 * 1000;
/** User name that code hosts take with a token as the password. */
const USER_NAME = "x-access-token";
/** Capability of git 2.46 and later: it takes the scheme and the value of an `Authorization`. */
const AUTHTYPE = "authtype";

/** Lifetime of a token without --duration. */
const DEFAULT_DURATION = "1h";

interface Kept {
  readonly token: string;
  /** ISO 8601. */
  readonly expires_at: string;
}

/**
 * A git credential helper (git-credential(1)): `get` answers for the service with a proxy token that is limited to the
 * one repository, minted when there is none that still lives; `erase` forgets it; `store` changes nothing. For any other
 * host it prints nothing, and git asks its next helper.
 */
export const gitCredential: RunCommand = async ({ positionals: [action], options }) => {
  if (action !== "get" && action !== "erase") return;
  const input = await readRequest();
  const request = credentialAttributes(input);
  const service = serviceAddress();
  if (`${request.get("protocol")}://${request.get("host")?.toLowerCase()}` !== service.origin) return;
  const repository = (request.get("path") ?? "").replace(/^\/+|(?:\.git)?\/*$/g, "");
  if (typeof splitRepository(repository) === "string") {
    if (action === "erase") return;
    throw new SvcError("usage", "git did not say which repository the credential is for", {
      hint: `Run: git config --global credential.${service.origin}.useHttpPath true`,
    });
  }
  const scopes = flagOf(options, "write") ? "contents:write" : "contents:read";
  const key = [service.origin, repository.toLowerCase(), scopes].join(" ");
  const kept = await readKept();
  if (action === "erase") {
    if (key in kept) await writeKept({ ...kept, [key]: undefined });
    return;
  }
  const known = kept[key];
  const lives = known !== undefined && Date.parse(known.expires_at) - Date.now() > LEAST_LIFE_MS;
  const found = lives
    ? known
    : await mint(repository, scopes, textOf(options, "duration") ?? DEFAULT_DURATION);
  if (!lives) await writeKept({ ...kept, [key]: found });
  const expiry = Math.floor(Date.parse(found.expires_at) / 1000);
  const isBearer = attributeList(input, "capability").includes(AUTHTYPE);
  const credential = isBearer
    ? bearerLines(found.token)
    : [`username=${USER_NAME}`, `password=${found.token}`];
  for (const line of [...credential, `password_expiry_utc=${expiry}`]) printLine(line);
};

/** A whole `Authorization`, which other helpers must not store: this one keeps the token itself. */
function bearerLines(token: string): string[] {
  return [`capability[]=${AUTHTYPE}`, "authtype=Bearer", `credential=${token}`, "ephemeral=1"];
}

async function mint(repository: string, scopes: string, duration: string): Promise<Kept> {
  // Not checked upstream: git is about to ask for the repository itself.
  const minted = await callApi<Kept>("POST", "/api/tokens?check=false", {
    repository,
    scopes,
    duration,
    description: `${BRAND.command} git-credential`,
  });
  return { token: minted.token, expires_at: minted.expires_at };
}

async function readRequest(): Promise<string> {
  const request = await text(process.stdin);
  if (request.length > MAX_REQUEST_CHARACTERS) throw new SvcError("usage", "the request is too long");
  return request;
}

function keptPath(): string {
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(cache, BRAND.command, "git-credential.json");
}

/** A file that this program did not write counts as empty, so that a new token is created. */
async function readKept(): Promise<Readonly<Record<string, Kept | undefined>>> {
  try {
    const parsed: unknown = JSON.parse(await readFile(keptPath(), "utf8"));
    if (typeof parsed !== "object" || parsed === null) return {};
    return Object.fromEntries(
      Object.entries(parsed).filter((entry): entry is [string, Kept] => isKept(entry[1])),
    );
  } catch {
    return {};
  }
}

/** Two concurrent helpers may each create a token. The file then holds one of them. */
async function writeKept(kept: Readonly<Record<string, Kept | undefined>>): Promise<void> {
  const living = Object.entries(kept).filter(
    ([, each]) => each !== undefined && Date.parse(each.expires_at) > Date.now(),
  );
  await mkdir(dirname(keptPath()), { recursive: true, mode: 0o700 });
  await writeAtomically(keptPath(), `${JSON.stringify(Object.fromEntries(living))}\n`, { mode: 0o600 });
}

function isKept(value: unknown): value is Kept {
  if (typeof value !== "object" || value === null) return false;
  const { token, expires_at: end } = value as Partial<Record<keyof Kept, unknown>>;
  return (
    typeof token === "string" &&
    /^\w+$/.test(token) &&
    typeof end === "string" &&
    !Number.isNaN(Date.parse(end))
  );
}
