import { realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { isOid, type ObjectFormat } from "@devplat/git-protocol";
import { corruptIn } from "../errors.ts";
import type { Oid } from "../oid.ts";
import { readSmallFile } from "../read-file.ts";

/** Maximum levels of alternates of alternates, counted from 0 (git: object-file.c, link_alt_odb_entries). */
const MAX_LEVEL = 5;
/** Maximum bytes of an `alternates` file. A path has at most 4 KiB. */
const MAX_ALTERNATES_BYTES = 1024 * 1024;

/** Maximum bytes of a `shallow` file: about 800,000 commits. */
const MAX_SHALLOW_BYTES = 32 * 1024 * 1024;

interface ObjectFolders {
  readonly folders: readonly string[];
  readonly problems: readonly string[];
}

/** The folders with the objects of a repository, and the commits at which its history is cut. */
export class ObjectSources {
  readonly #own: string;
  readonly #extra: readonly string[];
  readonly #format: ObjectFormat;
  readonly #shallowPath: string;
  #folders: ObjectFolders;
  #shallow: ReadonlySet<Oid> = new Set();
  #shallowState = "";

  /**
   * @param own `objects` folder of the repository
   * @param extra further folders, which are read like alternates
   */
  constructor(own: string, extra: readonly string[], format: ObjectFormat) {
    this.#own = own;
    this.#extra = extra;
    this.#format = format;
    this.#shallowPath = join(dirname(own), "shallow");
    this.#folders = { folders: [own], problems: [] };
  }

  /** The `objects` folders: the repository's own one first, then further ones, then alternates. */
  get folders(): readonly string[] {
    return this.#folders.folders;
  }

  /** Alternates that are not used, each with the reason. Git prints such a line as a warning and goes on. */
  get problems(): readonly string[] {
    return this.#folders.problems;
  }

  /** Commits whose parents are not in the repository, by its file `shallow`. Each change of the file brings a new set. */
  get shallow(): ReadonlySet<Oid> {
    return this.#shallow;
  }

  /**
   * Reads the files `alternates` and `shallow` again.
   *
   * @throws {GitStoreError} `corrupt_repository`, `too_large`; system errors
   */
  refresh(): void {
    this.#folders = objectFolders(this.#own, this.#extra);
    const facts = statSync(this.#shallowPath, { throwIfNoEntry: false });
    // Git writes a new file for each change and renames it.
    const state = facts === undefined ? "" : `${facts.ino} ${facts.size} ${facts.mtimeMs} ${facts.ctimeMs}`;
    if (state === this.#shallowState) return;
    const text = readSmallFile(this.#shallowPath, MAX_SHALLOW_BYTES)?.toString("latin1") ?? "";
    this.#shallow = parseShallow(text, this.#format, this.#shallowPath);
    this.#shallowState = state;
  }
}

/**
 * Finds the folders that a repository borrows objects from (gitrepository-layout, "objects/info/alternates"), and those that
 * these borrow from. Each folder occurs once, so a loop ends.
 */
function objectFolders(own: string, extra: readonly string[]): ObjectFolders {
  const folders = [own];
  const problems: string[] = [];
  // The usual case: it must cost nothing but this look.
  if (extra.length === 0 && !hasAlternates(own)) return { folders, problems };
  const known = new Set([realpathSync(own)]);
  const add = (path: string, level: number, namedIn: string): void => {
    const real = realFolder(path);
    if (real === undefined) {
      problems.push(`the folder ${JSON.stringify(path)}, which ${namedIn} names, cannot be opened`);
    } else if (!known.has(real)) {
      known.add(real);
      folders.push(path);
      follow(path, real, level + 1);
    }
  };
  const follow = (folder: string, real: string, level: number): void => {
    if (!hasAlternates(folder)) return;
    const file = alternatesPath(folder);
    if (level > MAX_LEVEL) {
      problems.push(`${file} is not followed: it is nested too deep`);
      return;
    }
    for (const entry of parseAlternates(readSmallFile(file, MAX_ALTERNATES_BYTES) ?? Buffer.alloc(0))) {
      add(isAbsolute(entry) ? entry : join(real, entry), level, file);
    }
  };
  for (const path of extra) add(path, 0, "the caller");
  follow(own, realpathSync(own), 0);
  return { folders, problems };
}

/**
 * Reads the text of an `alternates` file: a path in each line, comments after `#`, and paths in double quotes with the
 * escapes of C. A path whose quotes are not closed counts as it is written (git: object-file.c, parse_alt_odb_entry).
 */
export function parseAlternates(content: Buffer): string[] {
  const nul = content.indexOf(0);
  // latin1 keeps each byte, because git's syntax is one of bytes.
  const text = content.toString("latin1", 0, nul < 0 ? content.length : nul);
  const paths: string[] = [];
  for (let at = 0; at < text.length;) {
    const newline = text.indexOf("\n", at);
    const lineEnd = newline < 0 ? text.length : newline;
    const quoted = text[at] === '"' ? unquote(text, at) : undefined;
    const path = quoted?.value ?? (text[at] === "#" ? "" : text.slice(at, lineEnd));
    if (path !== "") paths.push(Buffer.from(path, "latin1").toString());
    at = (quoted?.end ?? lineEnd) + 1;
  }
  return paths;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\u0007",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  '"': '"',
};

/** Reads a string in quotes (git: quote.c, unquote_c_style). @returns undefined if it is not one */
function unquote(text: string, start: number): { value: string; end: number } | undefined {
  let value = "";
  for (let at = start + 1; at < text.length; at++) {
    const character = text[at]!;
    if (character === '"') return { value, end: at + 1 };
    if (character !== "\\") {
      value += character;
      continue;
    }
    const octal = /^[0-3][0-7]{2}/u.exec(text.slice(at + 1, at + 4))?.[0];
    const escaped =
      octal === undefined ? ESCAPES[text[at + 1] ?? ""] : String.fromCharCode(parseInt(octal, 8));
    if (escaped === undefined) return undefined;
    value += escaped;
    at += octal === undefined ? 1 : 3;
  }
  return undefined;
}

function alternatesPath(folder: string): string {
  return join(folder, "info", "alternates");
}

function hasAlternates(folder: string): boolean {
  return statSync(alternatesPath(folder), { throwIfNoEntry: false }) !== undefined;
}

function realFolder(path: string): string | undefined {
  try {
    return statSync(path).isDirectory() ? realpathSync(path) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reads the content of a `shallow` file: the id of a commit in each line.
 *
 * @throws {GitStoreError} `corrupt_repository`, naming the line
 */
export function parseShallow(text: string, format: ObjectFormat, path: string): Set<Oid> {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const [at, line] of lines.entries()) {
    if (!isOid(line, format))
      throw corruptIn("corrupt_repository", path, { path })(`line ${at + 1} is not an id`);
  }
  return new Set(lines);
}
