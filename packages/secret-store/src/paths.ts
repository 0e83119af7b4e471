import { SecretStoreError } from "./errors.ts";

/**
 * Maximum path below the user's root, in UTF-8 bytes. It is well below the key limit of every storage back end, and longer
 * than paths that people type.
 */
export const MAX_PATH_BYTES = 1024;

/**
 * Characters that are not printable by Go's `unicode.IsPrint`. Vault refuses them in a request path: NUL, other control and
 * format characters, spaces other than U+0020, unpaired surrogates.
 */
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;
/** `%2f` and `%5c`: another program may decode such a text once more, and read another path. */
const ENCODED_SEPARATOR = /%(?:2f|5c)/i;

/** The user's part of a store: `<mount>/<folder>`. Every path is below it. */
export interface UserRoot {
  /** Key-value mount without a slash at the beginning or end (`kv`, `team/kv`). */
  readonly mount: string;
  /** Folder `<user_prefix><username>/`, with the slash at the end. */
  readonly folder: string;
}

/**
 * The root of a user.
 * @param parts `mount`: `store.kv_mount`; `prefix`: `store.user_prefix`, empty or ending in `/`; `username`: one segment
 * @throws SecretStoreError `bad_path`, which names the part
 */
export function userRoot(parts: { mount: string; prefix: string; username: string }): UserRoot {
  const mount = problemOf(parts.mount);
  if (mount !== undefined) refuse("store.kv_mount", mount);
  if (parts.prefix !== "") {
    const prefix = parts.prefix.endsWith("/")
      ? problemOf(parts.prefix.slice(0, -1))
      : "it must end in a slash";
    if (prefix !== undefined) refuse("store.user_prefix", prefix);
  }
  const username = parts.username.includes("/") ? "it holds a slash" : problemOf(parts.username);
  if (username !== undefined) refuse("the user name", username);
  return { mount: parts.mount, folder: `${parts.prefix}${parts.username}/` };
}

/**
 * Checks the path of a secret. Never changes it.
 * @throws SecretStoreError `bad_path`
 */
export function checkPath(path: string): void {
  const problem = path.endsWith("/") ? "it ends in a slash, which means a folder" : problemOf(path);
  if (problem !== undefined) refusePath(path, problem);
}

/**
 * Checks the path of a folder: empty for the root, else a path that ends in `/`.
 * @throws SecretStoreError `bad_path`
 */
export function checkFolder(folder: string): void {
  if (folder === "") return;
  const problem = folder.endsWith("/") ? problemOf(folder.slice(0, -1)) : "a folder ends in a slash";
  if (problem !== undefined) refusePath(folder, problem);
}

/** Fault of a path, as the end of the message "… cannot be used: ", or undefined. */
function problemOf(path: string): string | undefined {
  if (path === "") return "it is empty";
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `it is longer than ${MAX_PATH_BYTES} bytes`;
  if (UNPRINTABLE.test(path)) return "it holds a character that cannot be printed";
  if (path.includes("\\")) return "it holds a backslash";
  if (ENCODED_SEPARATOR.test(path)) return "it holds an encoded slash";
  for (const segment of path.split("/")) {
    if (segment === "") return "it has an empty segment";
    if (segment === "." || segment === "..") return `it has a "${segment}" segment`;
  }
  return undefined;
}

function refusePath(path: string, problem: string): never {
  // JSON quoting escapes unprintable characters for the log line.
  refuse(`the path ${JSON.stringify(path.slice(0, 100))}`, problem);
}

function refuse(subject: string, problem: string): never {
  throw new SecretStoreError("bad_path", `${subject} cannot be used: ${problem}`, {
    hint: "Paths are relative to your own root, segments joined by single slashes, and are taken exactly as written.",
  });
}
