import type { EditMap, EditValue, LeafPath } from "../contract.ts";
import { Comments } from "../core/comments.ts";
import { maskSpans, type Span } from "../core/mask.ts";
import {
  applySplices,
  endingNear,
  indentAt,
  isBlank,
  lineEnd,
  lineStart,
  type Splice,
} from "../core/splice.ts";
import type { OpenDocument } from "../core/syntax.ts";
import { isMap, isNumber } from "../core/value.ts";
import { DocumentEditError, errorAt, unparsable, type Origin } from "../errors.ts";
import { NETRC_FIELDS, readNetrc, type NetrcEntry, type NetrcText } from "./read.ts";

/** Machine name of the `default` entry. No other entry can have it. */
const DEFAULT = "";

const REPEATED = "a machine occurs twice with one login";

/** Opens a netrc file: machine → login → `{password, account}`. An entry without a login has the login `""`. */
export function openNetrc(text: string, origin: Origin): OpenDocument {
  const read = readNetrc(text, origin);
  const seen = new Map<string, Map<string, NetrcEntry>>();
  const repeated = new Set<NetrcEntry>();
  for (const entry of read.entries) {
    const logins = seen.get(machineOf(entry)) ?? new Map<string, NetrcEntry>();
    seen.set(machineOf(entry), logins);
    const first = logins.get(loginOf(entry));
    if (first === undefined) logins.set(loginOf(entry), entry);
    else if (origin === "existing") repeated.add(first);
    else throw unparsable(origin, REPEATED, text, entry.keyword.start);
  }
  return new NetrcDocument(text, read, seen, repeated);
}

type Index = ReadonlyMap<string, ReadonlyMap<string, NetrcEntry>>;

class NetrcDocument implements OpenDocument {
  readonly value: EditMap;
  readonly #text: string;
  readonly #read: NetrcText;
  readonly #index: Index;
  /** Duplicate entries. They cannot be managed, because parsers choose different ones. */
  readonly #repeated: ReadonlySet<NetrcEntry>;

  constructor(text: string, read: NetrcText, index: Index, repeated: ReadonlySet<NetrcEntry>) {
    this.#repeated = repeated;
    this.#text = text;
    this.#read = read;
    this.#index = index;
    this.value = valueOf(index);
  }

  set(content: EditMap): string {
    const splices: Splice[] = [];
    const fresh: { machine: string; login: string; fields: EditMap }[] = [];
    for (const [machine, logins] of content) {
      for (const [login, fields] of requireMap(logins, machine)) {
        const wanted = requireMap(fields, machine);
        const entry = this.#index.get(machine)?.get(login);
        if (entry === undefined) {
          fresh.push({ machine, login, fields: wanted });
          continue;
        }
        if (this.#repeated.has(entry)) {
          throw errorAt("unsupported", REPEATED, this.#text, entry.keyword.start);
        }
        splices.push(...this.#update(entry, wanted));
      }
    }
    // `default` matches every machine, so it must be the last entry (netrc(5)).
    const named = fresh.filter(({ machine }) => machine !== DEFAULT);
    const last = fresh.filter(({ machine }) => machine === DEFAULT);
    splices.push(
      ...this.#add(
        named,
        this.#read.entries.find((entry) => entry.machine === undefined),
      ),
    );
    splices.push(...this.#add(last, undefined));
    return applySplices(this.#text, splices);
  }

  remove(paths: readonly LeafPath[]): string {
    const splices: Splice[] = [];
    for (const [machine = "", login, field] of paths) {
      const logins = this.#index.get(machine);
      const entries = login === undefined ? [...(logins?.values() ?? [])] : [logins?.get(login)];
      for (const entry of entries) {
        if (entry === undefined) continue;
        // A macro belongs to the entry before it. Without that entry, it would belong to another one.
        if (field === undefined && !entry.hasMacro) {
          splices.push(this.#cut(entry.keyword.start, entry.end));
          continue;
        }
        for (const name of field === undefined ? entry.fields.keys() : [field]) {
          const pair = entry.fields.get(name);
          if (pair !== undefined) splices.push(this.#cut(pair.keyword.start, pair.value.end));
        }
      }
    }
    return applySplices(this.#text, splices);
  }

  mask(): string {
    const spans: Span[] = [...this.#read.comments, ...this.#read.macros];
    for (const entry of this.#read.entries)
      spans.push(...[...entry.fields.values()].map(({ value }) => value));
    return maskSpans(this.#text, spans);
  }

  #update(entry: NetrcEntry, wanted: EditMap): Splice[] {
    const splices: Splice[] = [];
    for (const [field, value] of wanted) {
      const present = entry.fields.get(field);
      const written = quote(requireString(value, field), field);
      if (present !== undefined) {
        if (present.value.value !== value) splices.push({ ...present.value, text: written });
        continue;
      }
      const separator = this.#separator(entry);
      // On its own line, it is inserted after a comment on the line of the entry's last word.
      const rest = lineEnd(this.#text, entry.end);
      const isFree =
        isBlank(this.#text, entry.end, rest) || /^[ \t]*#/.test(this.#text.slice(entry.end, rest));
      const at = separator.includes("\n") && isFree ? rest : entry.end;
      splices.push({ start: at, end: at, text: `${separator}${requireField(field)} ${written}` });
    }
    return splices;
  }

  /** Text between the fields of an entry: a space, or a line break with indentation. */
  #separator(entry: NetrcEntry): string {
    const second = entry.login ?? entry.fields.values().next().value?.value;
    if (second === undefined || entry.machine === undefined) return " ";
    const between = this.#text.slice(entry.machine.end, second.start);
    return between.includes("\n")
      ? endingNear(this.#text, entry.machine.end) + indentAt(this.#text, second.start)
      : " ";
  }

  /** Writes entries before `before` and the comments directly above it, or at the end. */
  #add(
    entries: readonly { machine: string; login: string; fields: EditMap }[],
    before: NetrcEntry | undefined,
  ): Splice[] {
    if (entries.length === 0) return [];
    const text = this.#text;
    const model = this.#read.entries.find((entry) => entry.machine !== undefined);
    const separator = model === undefined ? " " : this.#separator(model);
    const ending = endingNear(text, model?.keyword.start ?? 0);
    const lines = entries.map(({ machine, login, fields }) => printEntry(machine, login, fields, separator));
    const block = lines.join(ending) + ending;
    if (before === undefined) {
      const open = text === "" || text.endsWith("\n") ? "" : ending;
      // An unfinished macro would include the new lines. An empty line ends it.
      const macro = this.#read.macros.at(-1);
      const unfinished = macro?.end === text.length && !/\n\r?\n$/.test(text);
      // A file without a final line break stays without one.
      const written = open === "" || unfinished ? block : block.slice(0, -ending.length);
      return [{ start: text.length, end: text.length, text: open + (unfinished ? ending : "") + written }];
    }
    const comments = new Comments(this.#read.comments);
    let at = before.keyword.start;
    if (!isBlank(text, lineStart(text, at), at)) return [{ start: at, end: at, text: ending + block }];
    for (at = lineStart(text, at); at > 0;) {
      const above = lineStart(text, at - 1);
      const first = above + indentAt(text, above).length;
      if (comments.at(first)?.start !== first) break;
      at = above;
    }
    return [{ start: at, end: at, text: block }];
  }

  #cut(start: number, end: number): Splice {
    const text = this.#text;
    const comments = new Comments(this.#read.comments);
    if (isBlank(text, lineStart(text, start), start)) return comments.cutLines(text, start, end);
    let from = start;
    while (text[from - 1] === " " || text[from - 1] === "\t") from--;
    return { start: from, end, text: comments.kept(text, from, end) };
  }
}

function machineOf(entry: NetrcEntry): string {
  return entry.machine?.value ?? DEFAULT;
}

function loginOf(entry: NetrcEntry): string {
  return entry.login?.value ?? "";
}

function valueOf(index: Index): EditMap {
  const map = new Map<string, EditValue>();
  for (const [machine, logins] of index) {
    const inner = new Map<string, EditValue>();
    for (const [login, entry] of logins) {
      inner.set(login, new Map([...entry.fields].map(([field, { value }]) => [field, value.value])));
    }
    map.set(machine, inner);
  }
  return map;
}

function printEntry(machine: string, login: string, fields: EditMap, separator: string): string {
  const words = [machine === DEFAULT ? "default" : `machine ${quote(machine, "machine")}`];
  if (login !== "") words.push(`login ${quote(login, "login")}`);
  for (const [field, value] of fields) {
    words.push(`${requireField(field)} ${quote(requireString(value, field), field)}`);
  }
  return words.join(separator);
}

/**
 * Prints a value that all parsers read unchanged: without quotes if possible, else in double quotes (curl 7.84 and later, Python 3.11
 * and later). A tab stays a tab, because only curl has an escape for it.
 * @throws DocumentEditError `unsafe_value` for CR, LF and NUL, which end the line or the file for some of them
 */
function quote(value: string, field: string): string {
  if (/[\r\n\0]/.test(value)) {
    throw new DocumentEditError(
      "unsafe_value",
      `${field} holds a line break or NUL, which netrc cannot carry`,
    );
  }
  if (value !== "" && !/[\s"\\]|^#/.test(value)) return value;
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

function requireMap(value: EditValue, machine: string): EditMap {
  if (isMap(value)) return value;
  throw new DocumentEditError(
    "unsupported",
    `netrc entries are machine, login, fields; ${machine} has no fields`,
  );
}

function requireString(value: EditValue, field: string): string {
  if (typeof value === "string") return value;
  if (isNumber(value)) return value.number;
  throw new DocumentEditError("unsupported", `the netrc field ${field} takes a string`);
}

function requireField(field: string): string {
  if ((NETRC_FIELDS as readonly string[]).includes(field)) return field;
  throw new DocumentEditError("unsupported", `${field} is not a field of netrc (password, account)`);
}
