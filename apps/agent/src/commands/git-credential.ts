import { text } from "node:stream/consumers";
import { noteLine } from "@devplat/base/terminal";
import { SecretStoreError, type Fields } from "@devplat/secret-store";
import { BRAND } from "../brand.ts";
import { coversGitHost } from "../config/sections/git-host.ts";
import { AgentError } from "../errors.ts";
import { valueText } from "../sync/content/value-text.ts";
import type { RunCommand } from "./common/command.ts";
import { withStore } from "./common/with-store.ts";

/** Git's own limit of a line of the protocol is far larger than any request of it. */
const MAX_REQUEST_CHARACTERS = 64 * 1024;
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const CONTROL_CHARACTER = /[\0-\x1f\x7f]/;

/**
 * A git credential helper (git-credential(1)): `get` answers from the store for the hosts of `git_credentials`; `store`
 * and `erase` change nothing, because the store is where credentials are managed. Without an answer it prints nothing,
 * and git asks its next helper.
 */
export const run: RunCommand = async (invocation) => {
  const [action] = invocation.positionals;
  if (action !== "get") return 0;
  const request = attributes(await text(process.stdin));
  if (request === undefined) return 0;
  return withStore(invocation, async (store, signal, { config }) => {
    const protocol = request.get("protocol") ?? "";
    const host = request.get("host") ?? "";
    const entry = config.git_credentials.find((each) => coversGitHost(each.host, protocol, host));
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

/**
 * The attributes of the request (git-credential(1)), up to the empty line that ends it. Undefined if one of them comes
 * twice or holds control characters: git sends none like that, and readers would differ on what it asks for.
 */
function attributes(request: string): ReadonlyMap<string, string> | undefined {
  if (request.length > MAX_REQUEST_CHARACTERS) throw new AgentError("usage", "the request is too long");
  const found = new Map<string, string>();
  for (const line of request.split("\n")) {
    if (line === "") break;
    const at = line.indexOf("=");
    const name = line.slice(0, at);
    // An attribute like `wwwauth[]` is a list, which nothing here reads.
    if (at < 1 || name.endsWith("[]")) continue;
    const value = line.slice(at + 1);
    if (found.has(name) || CONTROL_CHARACTER.test(value)) return undefined;
    found.set(name, value);
  }
  return found;
}

/** A field as one line: a line break would add an attribute of its own. */
function lineOf(fields: Fields, name: string, key: string): string | undefined {
  const value = fields.get(name);
  if (value === undefined) return undefined;
  const line = valueText(value);
  if (!/[\r\n\0]/.test(line)) return line;
  throw new AgentError("value_injection", `field ${name} of ${key} holds a line break or a NUL`);
}
