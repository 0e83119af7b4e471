import { text } from "node:stream/consumers";
import { noteLine } from "@devplat/base/terminal";
import { SecretStoreError, type Fields } from "@devplat/secret-store";
import { BRAND } from "../brand.ts";
import type { GitCredential } from "../config/surface-sections.ts";
import { AgentError } from "../errors.ts";
import { valueText } from "../sync/value-text.ts";
import type { RunCommand } from "./command.ts";
import { withStore } from "./secret-session.ts";

/** Git's own limit of a line of the protocol is far larger than any request of it. */
const MAX_REQUEST_CHARACTERS = 64 * 1024;

/**
 * A git credential helper (git-credential(1)): `get` answers from the store for the hosts of `git_credentials`; `store`
 * and `erase` change nothing, because the store is where credentials are managed. Without an answer it prints nothing,
 * and git asks its next helper.
 */
export const run: RunCommand = async (invocation) => {
  const [action] = invocation.positionals;
  if (action !== "get") return 0;
  const request = attributes(await text(process.stdin));
  return withStore(invocation, async (store, signal, { config }) => {
    const entry = matching(config.git_credentials, request);
    if (entry === undefined) return 0;
    let fields: Fields;
    try {
      ({ fields } = await store.read(entry.key, { signal }));
    } catch (error) {
      if (error instanceof SecretStoreError && error.code === "not_found") {
        noteLine(`${BRAND.command}: git_credentials of ${entry.host}: nothing is stored under ${entry.key}`);
        return 0;
      }
      throw error;
    }
    const username = lineOf(fields, entry.username_field, entry.key) ?? request.get("username");
    const password = lineOf(fields, entry.password_field, entry.key);
    if (password === undefined) {
      const field = `${entry.key} has no field ${entry.password_field}`;
      noteLine(`${BRAND.command}: git_credentials of ${entry.host}: ${field}`);
      return 0;
    }
    // Asked for one user, git must not be given the password of another.
    const asked = request.get("username");
    if (asked !== undefined && asked !== username) return 0;
    const lines = [...(username === undefined ? [] : [`username=${username}`]), `password=${password}`];
    const expires = fields.get("expires_at");
    const end = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
    if (Number.isFinite(end)) lines.push(`password_expiry_utc=${Math.floor(end / 1000)}`);
    process.stdout.write(`${lines.join("\n")}\n`);
    return 0;
  });
};

function attributes(request: string): ReadonlyMap<string, string> {
  if (request.length > MAX_REQUEST_CHARACTERS) throw new AgentError("usage", "the request is too long");
  return new Map(
    request.split("\n").flatMap((line) => {
      const at = line.indexOf("=");
      return at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
}

/** The first entry for the host. Only https, or http to this host itself: a password must not go in the clear. */
function matching(
  entries: readonly GitCredential[],
  request: ReadonlyMap<string, string>,
): GitCredential | undefined {
  const host = (request.get("host") ?? "").toLowerCase();
  const name = host.replace(/:\d+$/, "");
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(name);
  if (request.get("protocol") !== "https" && !(request.get("protocol") === "http" && isLocal))
    return undefined;
  return entries.find((entry) => {
    const wanted = entry.host.toLowerCase();
    const candidate = wanted.includes(":") ? host : name;
    return wanted.startsWith("*.") ? candidate.endsWith(wanted.slice(1)) : candidate === wanted;
  });
}

/** A field as one line: a line break would add an attribute of its own. */
function lineOf(fields: Fields, name: string, key: string): string | undefined {
  const value = fields.get(name);
  if (value === undefined) return undefined;
  const line = valueText(value);
  if (!/[\r\n\0]/.test(line)) return line;
  throw new AgentError("value_injection", `field ${name} of ${key} holds a line break or a NUL`);
}
