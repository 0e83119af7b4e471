import { isOid, type ObjectFormat } from "@devplat/git-protocol";
import { corruptIn } from "./errors.ts";
import { oidBytes } from "./object-format.ts";
import type { Oid } from "./oid.ts";

const corrupt = corruptIn("corrupt_object", "a commit");

/** The fields of a commit that describe the graph. */
export interface Commit {
  readonly tree: Oid;
  readonly parents: readonly Oid[];
  /** Committer date, seconds since the epoch; 0 when the line does not parse (as git reads it). */
  readonly committerTime: number;
}

const SPACE = 0x20;
const NEWLINE = 0x0a;

/**
 * Reads the header of a commit. The message is neither read nor copied.
 *
 * @throws {GitStoreError} `corrupt_object`
 */
export function parseCommit(content: Buffer, format: ObjectFormat): Commit {
  const digits = oidBytes(format) * 2;
  const tree = oidLine(content, 0, "tree ", digits, format);
  if (tree === undefined) throw corrupt("no tree line");
  let at = "tree ".length + digits + 1;
  const parents: Oid[] = [];
  for (;;) {
    const parent = oidLine(content, at, "parent ", digits, format);
    if (parent === undefined) break;
    parents.push(parent);
    at += "parent ".length + digits + 1;
  }
  if (!startsWith(content, at, "author ")) throw corrupt("no author line");
  return { tree, parents, committerTime: committerTime(content, at) };
}

/**
 * The id on a line of the form `<key><oid>\n` at `at`.
 *
 * @returns undefined when the line has another key
 */
export function oidLine(
  content: Buffer,
  at: number,
  key: string,
  digits: number,
  format: ObjectFormat,
): Oid | undefined {
  if (!startsWith(content, at, key)) return undefined;
  const start = at + key.length;
  const oid = content.toString("latin1", start, start + digits);
  if (content[start + digits] !== NEWLINE || !isOid(oid, format))
    throw corrupt(`a bad id after "${key.trim()}"`);
  return oid;
}

/** Tells whether the ASCII text `key` is at `at`. */
export function startsWith(content: Buffer, at: number, key: string): boolean {
  for (let i = 0; i < key.length; i++) {
    if (content[at + i] !== key.charCodeAt(i)) return false;
  }
  return true;
}

/** The date of the `committer` line that follows the `author` line at `at`. */
function committerTime(content: Buffer, at: number): number {
  const start = content.indexOf(NEWLINE, at) + 1;
  if (start === 0 || !startsWith(content, start, "committer ")) return 0;
  const end = content.indexOf(NEWLINE, start);
  // "… <mail> 1700000000 +0100": the second field from the end; names may contain digits and spaces.
  const mailEnd = content.lastIndexOf(0x3e, end < 0 ? content.length : end);
  if (mailEnd < start) return 0;
  let seconds = 0;
  let i = mailEnd + 1;
  while (content[i] === SPACE) i++;
  for (; content[i] !== undefined && content[i]! >= 0x30 && content[i]! <= 0x39; i++) {
    seconds = seconds * 10 + content[i]! - 0x30;
  }
  return seconds <= Number.MAX_SAFE_INTEGER ? seconds : 0;
}
