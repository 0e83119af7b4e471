import { corruptIn, type GitStoreError } from "../errors.ts";

const corrupt = (line: number): GitStoreError =>
  corruptIn("corrupt_repository", "the config")(`line ${line} does not parse`);

/**
 * Values of a repository's `config` by key: `section.name` or `section.subsection.name`, section and name in lower
 * case. If a key occurs several times, the last value counts.
 */
export type GitConfig = ReadonlyMap<string, string>;

/**
 * Reads the text of a `config` file (git-config, "CONFIGURATION FILE"). Includes are not followed.
 *
 * @throws {GitStoreError} `corrupt_repository`, naming the line
 */
export function parseConfig(text: string): GitConfig {
  const values = new Map<string, string>();
  let section = "";
  // A backslash at the end of a line continues it.
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  for (let i = 0; i < lines.length; i++) {
    const number = i + 1;
    let line = lines[i]!.trim();
    if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    if (line.startsWith("[")) {
      const header = /^\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\][ \t]*/u.exec(line);
      if (header === null) throw corrupt(number);
      const subsection = header[2]?.replaceAll(/\\(.)/gu, "$1");
      section = header[1]!.toLowerCase() + (subsection === undefined ? "" : `.${subsection}`);
      line = line.slice(header[0].length);
      if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    }
    while (/(?:^|[^\\])(?:\\\\)*\\$/u.test(line) && i + 1 < lines.length)
      line = line.slice(0, -1) + lines[++i]!;
    const pair = /^([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?$/u.exec(line);
    if (pair === null || section === "") throw corrupt(number);
    values.set(
      `${section}.${pair[1]!.toLowerCase()}`,
      pair[2] === undefined ? "true" : unquote(pair[2], number),
    );
  }
  return values;
}

/** Formats a `config` file with these values. Keys have the form that {@link parseConfig} returns. */
export function formatConfig(values: GitConfig): string {
  const sections = new Map<string, string[]>();
  for (const [key, value] of values) {
    const parts = /^([a-z0-9-]+)(?:\.(.+))?\.([a-z][a-z0-9-]*)$/su.exec(key);
    if (parts === null || /[\n\0]/u.test(parts[2] ?? "") || value.includes("\0")) {
      throw new RangeError(`"${key}" is not a key of a git configuration`);
    }
    const quoted = parts[2] === undefined ? "" : ` "${parts[2].replaceAll(/["\\]/gu, "\\$&")}"`;
    const header = `[${parts[1]}${quoted}]`;
    sections.set(header, [...(sections.get(header) ?? []), `\t${parts[3]} = ${quote(value)}`]);
  }
  return [...sections].map(([header, lines]) => `${header}\n${lines.join("\n")}\n`).join("");
}

/** Whether a value means yes (git-config, "Values"). */
export function isTrue(value: string | undefined): boolean {
  return ["true", "yes", "on", "1"].includes(value?.toLowerCase() ?? "");
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b", '"': '"', "\\": "\\" };

function unquote(raw: string, line: number): string {
  let value = "";
  let quoted = false;
  // End of the value, unless something other than unquoted blanks follows.
  let end = 0;
  for (let i = 0; i < raw.length; i++) {
    const character = raw[i]!;
    if (character === '"') {
      quoted = !quoted;
      end = value.length;
    } else if (character === "\\") {
      const escaped = ESCAPES[raw[++i] ?? ""];
      if (escaped === undefined) throw corrupt(line);
      value += escaped;
      end = value.length;
    } else if (!quoted && (character === "#" || character === ";")) {
      break;
    } else {
      value += character;
      if (quoted || (character !== " " && character !== "\t")) end = value.length;
    }
  }
  if (quoted) throw corrupt(line);
  return value.slice(0, end);
}

function quote(value: string): string {
  const escaped = value.replaceAll(/["\\]/gu, "\\$&").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
  return /^[\s]|[\s]$|[#;\r]/u.test(value) ? `"${escaped}"` : escaped;
}
