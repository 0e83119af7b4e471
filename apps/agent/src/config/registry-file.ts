import { AgentError } from "../errors.ts";

/** The first line of the format that regedit writes since Windows 2000. */
const HEADER = "Windows Registry Editor Version 5.00";
/** Bytes of a hex value on one line; regedit breaks at about 80 columns. */
const HEX_PER_LINE = 20;
/** Largest file read, in bytes: a configuration of 1 MiB, doubled by UTF-16 and trebled by hex. */
export const MAX_REGISTRY_FILE_BYTES = 6 * 1024 * 1024;

/** A value of the registry: REG_SZ, REG_DWORD or REG_MULTI_SZ. */
export type RegistryValue = string | number | readonly string[];

/** A key of the registry: its values and its keys below. */
export interface RegistryKey {
  readonly values: Map<string, RegistryValue>;
  readonly keys: Map<string, RegistryKey>;
}

export function emptyKey(): RegistryKey {
  return { values: new Map(), keys: new Map() };
}

/**
 * A registry file (.reg, version 5) that replaces everything below `root`: UTF-16LE with a byte order mark and CRLF.
 * Texts that a quoted value cannot carry are `hex(1)`, lists `hex(7)`.
 */
export function writeRegistryFile(root: string, key: RegistryKey): Buffer {
  const lines = [HEADER, "", `[-${root}]`, ""];
  writeKey(root, key, lines);
  return Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(lines.join("\r\n") + "\r\n", "utf16le")]);
}

function writeKey(path: string, key: RegistryKey, lines: string[]): void {
  lines.push(`[${path}]`);
  for (const [name, value] of key.values)
    lines.push(`${name === "" ? "@" : quoted(name)}=${valueText(value)}`);
  lines.push("");
  for (const [name, inner] of key.keys) writeKey(`${path}\\${name}`, inner, lines);
}

function valueText(value: RegistryValue): string {
  if (typeof value === "number") return `dword:${value.toString(16).padStart(8, "0")}`;
  if (typeof value !== "string") return hexText(7, `${value.map((item) => `${item}\0`).join("")}\0`);
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  return /[\u0000-\u001f]/.test(value) ? hexText(1, `${value}\0`) : quoted(value);
}

function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

function hexText(type: number, text: string): string {
  const bytes = [...Buffer.from(text, "utf16le")].map((byte) => byte.toString(16).padStart(2, "0"));
  const lines: string[] = [];
  for (let i = 0; i < bytes.length; i += HEX_PER_LINE) lines.push(bytes.slice(i, i + HEX_PER_LINE).join(","));
  return `hex(${type}):${lines.join(",\\\r\n  ")}`;
}

/**
 * Reads a registry file and gives what is below `root` after all its entries, deletions (`[-key]`, `"name"=-`)
 * included; entries elsewhere are passed over.
 * @param bytes UTF-16LE with a byte order mark, or UTF-8
 * @throws AgentError `registry_file_invalid` with the line; never with its text
 */
export function readRegistryFile(root: string, bytes: Uint8Array): RegistryKey {
  const top = emptyKey();
  let current: RegistryKey | undefined;
  const lines = logicalLines(decode(bytes));
  const [first] = lines;
  if (first?.text !== HEADER && first?.text !== "REGEDIT4") throw fault(1, "this is not a registry file");
  for (const { line, text } of lines.slice(1)) {
    if (text === "" || text.startsWith(";")) continue;
    const section = /^\[(-?)([^\]]*)\]$/.exec(text);
    if (section !== null) {
      const named = fullName(section[2] ?? "");
      const path = below(root, named);
      current = undefined;
      if (section[1] === "-") removeKey(top, path, root, named);
      else if (path !== undefined) current = makeKey(top, path);
      continue;
    }
    // Lines end in LF alone: U+2028 and its kin are text, which a dot takes with the flag s only.
    const entry = /^(@|"(?:[^"\\]|\\.)*")\s*=\s*(.*)$/s.exec(text);
    if (entry === null) throw fault(line, "expected a key in brackets or a value");
    if (current === undefined) continue;
    const name = entry[1] === "@" ? "" : unquote(entry[1] ?? "");
    if (entry[2] === "-") current.values.delete(name);
    else current.values.set(name, parseValue(entry[2] ?? "", line));
  }
  return top;
}

/** Lines with their numbers. A line that ends in a backslash continues in the next one. */
function logicalLines(text: string): { line: number; text: string }[] {
  const joined: { line: number; text: string }[] = [];
  let open = false;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const part = raw.trim();
    const last = joined.at(-1);
    if (open && last !== undefined) last.text += part;
    else joined.push({ line: index + 1, text: part });
    const now = joined.at(-1);
    open = now !== undefined && /=hex[^"]*\\$/.test(now.text);
    if (open && now !== undefined) now.text = now.text.slice(0, -1);
  }
  return joined;
}

function parseValue(text: string, line: number): RegistryValue {
  if (/^"(?:[^"\\]|\\.)*"$/s.test(text)) return unquote(text);
  const dword = /^dword:([0-9a-f]{1,8})$/i.exec(text);
  if (dword !== null) return Number.parseInt(dword[1] ?? "", 16);
  const hex = /^hex\(([127])\):((?:[0-9a-f]{2},?)*)$/i.exec(text);
  if (hex === null) throw fault(line, "expected a text, dword, hex(1), hex(2) or hex(7)");
  const bytes = (hex[2] ?? "").split(",").filter((byte) => byte !== "");
  const decoded = Buffer.from(bytes.map((byte) => Number.parseInt(byte, 16))).toString("utf16le");
  if (hex[1] !== "7") return decoded.replace(/\0$/, "");
  const items = decoded.split("\0");
  // The list ends with an empty item, whose own end the split shows as one more.
  while (items.at(-1) === "") items.pop();
  return items;
}

function unquote(text: string): string {
  return text.slice(1, -1).replace(/\\(.)/gs, "$1");
}

function decode(bytes: Uint8Array): string {
  try {
    if (bytes[0] === 0xff && bytes[1] === 0xfe)
      return new TextDecoder("utf-16le", { fatal: true }).decode(bytes);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw fault(1, "neither UTF-16 nor UTF-8 text");
  }
}

function fullName(path: string): string {
  return path.replace(/^HKLM(?=\\|$)/i, "HKEY_LOCAL_MACHINE").replace(/^HKCU(?=\\|$)/i, "HKEY_CURRENT_USER");
}

/** Names below the root. Undefined for a key elsewhere. The registry ignores letter case. */
function below(root: string, names: string): string[] | undefined {
  if (names.toLowerCase() === root.toLowerCase()) return [];
  if (!names.toLowerCase().startsWith(`${root.toLowerCase()}\\`)) return undefined;
  return names.slice(root.length + 1).split("\\");
}

function makeKey(top: RegistryKey, path: readonly string[]): RegistryKey {
  let key = top;
  for (const name of path) {
    const next = key.keys.get(name) ?? emptyKey();
    key.keys.set(name, next);
    key = next;
  }
  return key;
}

function removeKey(top: RegistryKey, path: string[] | undefined, root: string, named: string): void {
  const above = root.toLowerCase().startsWith(`${named.toLowerCase()}\\`);
  if (above || path?.length === 0) {
    top.keys.clear();
    top.values.clear();
    return;
  }
  const last = path?.pop();
  if (path === undefined || last === undefined) return;
  let key: RegistryKey | undefined = top;
  for (const name of path) key = key?.keys.get(name);
  key?.keys.delete(last);
}

function fault(line: number, message: string): AgentError {
  return new AgentError("registry_file_invalid", `line ${line}: ${message}`);
}
