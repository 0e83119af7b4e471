import { exists, formatDuration, writeAtomically } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { ConfigError, formatProblem, validateConfig } from "@devplat/config";
import { parseConfigDocument } from "@devplat/config/document";
import {
  DocumentEditError,
  documentFormat,
  type EditMap,
  type EditValue,
  type LeafPath,
} from "@devplat/document-edit";
import { dirname } from "node:path";
import { readConfigFile } from "../../../config/file.ts";
import { linkChain } from "../../../agent-files/link-chain.ts";
import { ensureFolder } from "../../../agent-files/places.ts";
import { ForwardError, RemotesFileError } from "../errors/forward-error.ts";
import { remotesSchema, sameHost, type RemoteEntry } from "./remote-entry.ts";

/** Text of a file without entries. */
const NO_REMOTES = "remotes: []\n";
/** Entries are found by their host. */
const EDIT_OPTIONS = { lists: { remotes: "host" } } as const;

export interface RemotesFileParts {
  /** Path of ssh.yaml. */
  readonly path: string;
  /** Socket of an entry that names none. */
  readonly defaultSocket: string;
}

/** New values of an entry's keys; null removes a key. */
export type RemoteChange = { readonly [Key in keyof Omit<RemoteEntry, "host">]?: RemoteEntry[Key] | null };

/**
 * The file of managed SSH forwards. People edit it too, so it is read again before each write, and a write changes nothing
 * but one entry. A file that is not valid is not written.
 */
export class RemotesFile {
  readonly #parts: RemotesFileParts;
  readonly #writes = new Serializer();
  /** The file had entries when it was last read. */
  #hadEntries = false;

  constructor(parts: RemotesFileParts) {
    this.#parts = parts;
  }

  /**
   * The entries in the order of the file; none if there is no file.
   * @throws RemotesFileError | AgentError `config_refused` if another user can write the file
   */
  async read(): Promise<readonly RemoteEntry[]> {
    return this.#parse(await this.#text());
  }

  /** Appends an entry. @throws ForwardError `host_exists` | RemotesFileError */
  async add(entry: RemoteEntry): Promise<RemoteEntry> {
    const { host, ...settings } = entry;
    return await this.#edit(host, (found) => {
      if (found !== undefined)
        throw new ForwardError("host_exists", `${host} is already in ${this.#parts.path}`);
      return { set: settings };
    });
  }

  /** Changes keys of an entry. @throws ForwardError `host_unknown` | RemotesFileError */
  async update(host: string, change: RemoteChange): Promise<RemoteEntry> {
    return await this.#edit(host, (found) => {
      if (found === undefined) throw this.#unknown(host);
      return { set: change };
    });
  }

  /** Removes an entry. @throws ForwardError `host_unknown` | RemotesFileError */
  async remove(host: string): Promise<void> {
    await this.#writes.run(async () => {
      const text = await this.#text();
      const found = this.#parse(text).find((each) => sameHost(each.host, host));
      if (found === undefined) throw this.#unknown(host);
      // Only keys that are written in the file: defaults are not in it.
      const [written] = this.#documents(text).filter((each) => each["host"] === found.host);
      await this.#write(text, new Map(), leavesOf(found.host, written ?? {}));
    });
  }

  #edit(
    host: string,
    plan: (found: RemoteEntry | undefined) => { readonly set: RemoteChange },
  ): Promise<RemoteEntry> {
    return this.#writes.run(async () => {
      const text = await this.#text();
      const found = this.#parse(text).find((each) => sameHost(each.host, host));
      const { set } = plan(found);
      const name = found?.host ?? host;
      const [written = {}] = this.#documents(text).filter((each) => each["host"] === name);
      const content = new Map<string, EditValue>([["host", name]]);
      const removed: LeafPath[] = [];
      for (const [key, value] of Object.entries(set)) {
        // A mapping is replaced as a whole: its former keys go.
        if (key in written) removed.push(...leavesOf(name, { [key]: written[key] }));
        if (value !== null && value !== undefined) content.set(key, editValue(key, value));
      }
      const entries = await this.#write(text, new Map([["remotes", [content]]]), removed);
      const entry = entries.find((each) => each.host === name);
      if (entry === undefined) throw this.#invalid(`the entry of ${name} is missing after the edit`, 0);
      return entry;
    });
  }

  async #write(
    text: string | undefined,
    content: EditMap,
    remove: readonly LeafPath[],
  ): Promise<readonly RemoteEntry[]> {
    const result = this.#edited(text, content, remove);
    // A blank file could be one that somebody is writing.
    const edited = result.trim() === "" ? NO_REMOTES : result;
    // A text that cannot be read again must not reach the file.
    const entries = this.#parse(edited);
    await ensureFolder(dirname(this.#parts.path));
    await writeAtomically(await this.#target(), edited, { mode: 0o600 });
    return entries;
  }

  /** The file that is written: a link stays a link, as with the targets of rules. */
  async #target(): Promise<string> {
    const { path } = this.#parts;
    const target = (await linkChain(path)).at(-1) ?? path;
    if (target !== path && !(await exists(dirname(target))))
      throw this.#invalid(`${path} is a link to ${target}, whose folder does not exist`, 0);
    return target;
  }

  #edited(text: string | undefined, content: EditMap, remove: readonly LeafPath[]): string {
    try {
      return documentFormat("yaml").edit(text, content, { ...EDIT_OPTIONS, remove }).text;
    } catch (error) {
      if (!(error instanceof DocumentEditError)) throw error;
      throw this.#invalid(error.message, error.line, error);
    }
  }

  async #text(): Promise<string | undefined> {
    try {
      return (await readConfigFile(this.#parts.path))?.text;
    } catch (error) {
      throw this.#asFileError(error);
    }
  }

  /** An editor may truncate the file before it writes: a blank file is refused if the file had entries before. */
  #parse(text: string | undefined): readonly RemoteEntry[] {
    if (this.#hadEntries && text?.trim() === "") {
      throw this.#invalid(`${this.#parts.path} is empty: write 'remotes: []' if there are no remotes`, 1);
    }
    const entries = this.#entriesOf(text);
    this.#hadEntries = entries.length > 0;
    return entries;
  }

  #entriesOf(text: string | undefined): readonly RemoteEntry[] {
    const { path, defaultSocket } = this.#parts;
    try {
      const document = parseConfigDocument(path, text ?? "");
      const schema = remotesSchema(defaultSocket);
      return validateConfig(schema, document.value, (key) => ({ source: path, ...document.position(key) }))
        .remotes;
    } catch (error) {
      throw this.#asFileError(error);
    }
  }

  /** The entries as they are written. Only for a text that {@link RemotesFile.#parse} has accepted. */
  #documents(text: string | undefined): Record<string, unknown>[] {
    const { value } = parseConfigDocument(this.#parts.path, text ?? "");
    return (value as { remotes?: Record<string, unknown>[] }).remotes ?? [];
  }

  #asFileError(error: unknown): unknown {
    if (!(error instanceof ConfigError)) return error;
    // One line: status and pages show it as one.
    const faults = error.problems.map(formatProblem).join("; ");
    return this.#invalid(faults, error.problems[0]?.line ?? 0, error);
  }

  #invalid(message: string, line: number, cause?: unknown): RemotesFileError {
    const hint = `Correct ${this.#parts.path}; until then it is not changed, and running forwards stay up.`;
    return new RemotesFileError(message, line, { hint, cause });
  }

  #unknown(host: string): ForwardError {
    return new ForwardError("host_unknown", `${host} is not in ${this.#parts.path}`);
  }
}

/** A value of a key as the file holds it. */
function editValue(key: string, value: NonNullable<RemoteChange[keyof RemoteChange]>): EditValue {
  if (key === "token_ttl") return formatDuration(value as number);
  if (typeof value === "number") return { number: String(value) };
  if (typeof value === "object" && !Array.isArray(value)) return new Map(Object.entries(value));
  return value;
}

/** Paths of all values of an entry. */
function leavesOf(host: string, written: Readonly<Record<string, unknown>>): LeafPath[] {
  const base = ["remotes", `[host=${host}]`];
  return Object.entries(written).flatMap(([key, value]) => {
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
    const inner = isMap ? Object.keys(value) : [];
    return inner.length === 0 ? [[...base, key]] : inner.map((name) => [...base, key, name]);
  });
}
