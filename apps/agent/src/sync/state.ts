import { Secret, writeAtomically } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { createHmac, randomBytes } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { readOwnFile, unwritableFile } from "../agent-files/own-file.ts";
import { ensureFolder } from "../agent-files/places.ts";

/** Bumped when the file's shape changes; an older or newer one is rebuilt, not guessed at. */
const STATE_SCHEMA = 1;
/** Bytes of the key under which content hashes are made: a full SHA-256 block of entropy is not needed. */
const KEY_BYTES = 32;

const runRecord = z.object({
  at: z.string(),
  exit_code: z.int().nullable(),
  timed_out: z.boolean(),
  duration_ms: z.number(),
  stdout_bytes: z.int(),
  stderr_bytes: z.int(),
});

const ruleRecord = z.object({
  state: z.enum(["ok", "pending", "failed", "missing", "paused"]),
  error: z.string().nullable(),
  last_attempt: z.string().nullable(),
  last_synced: z.string().nullable(),
  next_attempt: z.string().nullable(),
  consecutive_failures: z.int().min(0),
  version: z.int().nullable(),
  /** Stamp (see CycleSecrets) of each secret that the file was last made from, by path. */
  inputs: z.record(z.string(), z.string()),
  /** HMAC of the rule as configured and of the environment values that its template read. */
  config: z.string(),
  environment: z.array(z.string()),
  /** Facts for cleaning up after the rule was removed from the configuration. Names of keys, never values. */
  target: z.object({
    path: z.string(),
    file: z.string(),
    format: z.string(),
    dialect: z.string().nullable(),
    on_remove: z.enum(["keep", "clean"]),
    allow_tracked: z.boolean(),
  }),
  managed: z.array(z.array(z.string())),
  /** Those of them that were in the file before the rule, and stay when it goes. */
  found: z.array(z.array(z.string())).default([]),
  /** The file has changed and the rule's command has not yet run with success. */
  run_pending: z.boolean(),
  last_run: runRecord.nullable(),
});

const fileRecord = z.object({
  /** Device, inode, size, times and mode after the last look. If they are equal, no other program has changed the file. */
  signature: z.string(),
  /** HMAC of the content that we wrote last. */
  content: z.string(),
  in_place: z.boolean(),
});

const stateDocument = z.object({
  schema: z.literal(STATE_SCHEMA),
  /** End of the last whole cycle, ISO 8601. */
  last_cycle_at: z.string().nullable(),
  /** When the store could not be reached any more, ISO 8601; null while it can. */
  stale_since: z.string().nullable(),
  last_error: z.string().nullable(),
  rules: z.record(z.string(), ruleRecord),
  /** By real path. */
  files: z.record(z.string(), fileRecord),
});

export type RunRecord = z.infer<typeof runRecord>;
/** It is replaced, never changed: see `nextRecord`. */
export type RuleRecord = Readonly<z.infer<typeof ruleRecord>>;
export type FileRecord = z.infer<typeof fileRecord>;
export type StateDocument = z.infer<typeof stateDocument>;

/**
 * State of the daemon between cycles, in `<state>/state.json` (0600). It holds no value of a secret: contents
 * are remembered as HMACs under a key of this host, which a copied state file does not contain.
 *
 * A lost, corrupt or foreign file is not an error: the state starts empty, and the next cycle finds that files are equal
 * without writing them.
 */
export class StateFile {
  readonly #path: string;
  readonly #key: Buffer;
  #written: string;
  /** One write at a time: an older document must not come last. */
  readonly #saves = new Serializer();
  readonly document: StateDocument;
  /** The file was there and could not be used. */
  readonly rebuilt: boolean;

  private constructor(
    path: string,
    key: Buffer,
    loaded: { document: StateDocument | undefined; found: boolean },
  ) {
    this.#path = path;
    this.#key = key;
    this.document = loaded.document ?? emptyState();
    this.rebuilt = loaded.found && loaded.document === undefined;
    this.#written = loaded.document === undefined ? "" : print(this.document);
  }

  /**
   * Opens it for the writer: makes the folder and the key if need be. Hold the writer lock.
   * @throws AgentError `place_refused`
   */
  static async open(folder: string): Promise<StateFile> {
    await ensureFolder(folder);
    const keyPath = join(folder, "hmac.key");
    let key = await readOwnFile(keyPath);
    let loaded = await load(join(folder, "state.json"));
    if (key?.length !== KEY_BYTES) {
      key = randomBytes(KEY_BYTES);
      await write(keyPath, key);
      // HMACs under another key say nothing.
      loaded = { ...loaded, document: undefined };
    }
    return new StateFile(join(folder, "state.json"), key, loaded);
  }

  /** Opens it to look at, writing nothing, now or later: for `status` and `--dry-run`. */
  static async peek(folder: string): Promise<StateFile> {
    const key = await readOwnFile(join(folder, "hmac.key")).catch(() => undefined);
    const loaded = await load(join(folder, "state.json"));
    const usable = key?.length === KEY_BYTES;
    return new StateFile("", usable ? key : randomBytes(KEY_BYTES), {
      ...loaded,
      document: usable ? loaded.document : undefined,
    });
  }

  /** The key of the state folder, to derive other keys from. */
  get key(): Secret<Buffer> {
    return new Secret(this.#key);
  }

  /** A keyed hash for comparing content without keeping it. */
  hmac(content: string | Uint8Array): string {
    return createHmac("sha256", this.#key).update(content).digest("base64url");
  }

  /** Writes the document, as it is when its turn comes, if it changed. @throws AgentError `place_refused` */
  save(): Promise<void> {
    return this.#saves.run(() => this.#save());
  }

  async #save(): Promise<void> {
    if (this.#path === "") throw new Error("a peeked state cannot be saved");
    const text = print(this.document);
    if (text === this.#written) return;
    await write(this.#path, text);
    this.#written = text;
  }
}

export function emptyState(): StateDocument {
  return {
    schema: STATE_SCHEMA,
    last_cycle_at: null,
    stale_since: null,
    last_error: null,
    rules: {},
    files: {},
  };
}

async function load(path: string): Promise<{ document: StateDocument | undefined; found: boolean }> {
  const bytes = await readOwnFile(path).catch(() => Buffer.alloc(0));
  if (bytes === undefined) return { document: undefined, found: false };
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    return { document: undefined, found: true };
  }
  return { document: stateDocument.safeParse(value).data, found: true };
}

function print(document: StateDocument): string {
  return `${JSON.stringify(document, undefined, 1)}\n`;
}

async function write(path: string, content: string | Buffer): Promise<void> {
  try {
    await writeAtomically(path, content);
  } catch (error) {
    throw unwritableFile(path, error);
  }
}
