import { GitStoreError } from "../errors.ts";

/** Control characters, and characters that `git check-ref-format` forbids: space ~ ^ : ? * [ \ and DEL. */
// oxlint-disable-next-line no-control-regex -- the pattern searches for control characters
const FORBIDDEN = /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|\/$|\.$|^\/|(?:^|\/)\.|\.lock(?:\/|$)/u;

/** Tells whether a ref may have this name: `HEAD`, or a name below `refs/` by the rules of `git check-ref-format`. */
export function isRefName(name: string): boolean {
  return name === "HEAD" || (name.startsWith("refs/") && name.length > 5 && !FORBIDDEN.test(name));
}

/** @throws {GitStoreError} `bad_ref_name` */
export function checkRefName(name: string): void {
  if (!isRefName(name)) {
    throw new GitStoreError(
      "bad_ref_name",
      `use ref ${JSON.stringify(name)}: git does not allow such a name`,
    );
  }
}
