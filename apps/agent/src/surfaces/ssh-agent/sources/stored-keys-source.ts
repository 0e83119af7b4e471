import type { Logger, Secret } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { KeyPair } from "@devplat/ssh-protocol";
import { ChangeListeners } from "../../../change-listeners.ts";
import { publicMessage } from "../../../errors.ts";
import type { CachedSecrets } from "../../../secrets/folder/cached-secrets.ts";
import { SecretFolder } from "../../../secrets/folder/secret-folder.ts";
import type { StoreChanges } from "../../../secrets/folder/store-changes.ts";
import { isStoreWide } from "../../../secrets/store-health.ts";
import { stampOf } from "../../../secrets/version-stamp.ts";
import { AgentRefusal } from "../agent-refusal.ts";
import type { IdentitySource, SshIdentity } from "../identity.ts";
import {
  EntryReader,
  type EntryReaderParts,
  type EntryReaderSettings,
  type StoredEntry,
} from "./entry-reader.ts";
import { LISTING_LIMIT_MS, endsInTime } from "./listing-limit.ts";
import { problemText } from "./problem-text.ts";
import type { StoredIdentity } from "./stored-identity.ts";

/** Interval between looks at the store while it reports no changes, in milliseconds. A listing looks itself. */
const POLL_MS = 5 * 60_000;

export interface StoredKeysParts extends EntryReaderParts {
  readonly secrets: CachedSecrets;
  readonly changes: StoreChanges;
  readonly logger: Logger;
}

export interface StoredKeysSettings extends Omit<EntryReaderSettings, "onChange"> {
  readonly name: string;
  readonly kind: "kv" | "enrolments";
  /** Paths of secrets and folders. */
  readonly roots: readonly string[];
}

/** SSH keys of secrets of the store. A secret that cannot be read or holds no sound key does not hide another. */
export class StoredKeysSource implements IdentitySource {
  readonly name: string;
  readonly kind: StoredKeysSettings["kind"];
  readonly #parts: StoredKeysParts;
  readonly #reader: EntryReader;
  readonly #folder: SecretFolder;
  readonly #listeners = new ChangeListeners();
  readonly #turns = new Serializer();
  readonly #end = new AbortController();
  #queued: Promise<void> | undefined;
  #following: Promise<void> | undefined;
  #entries: ReadonlyMap<string, StoredEntry> = new Map();
  #isSlow = false;

  constructor(parts: StoredKeysParts, settings: StoredKeysSettings) {
    this.name = settings.name;
    this.kind = settings.kind;
    this.#parts = parts;
    const { restrictions, lifetimeMs } = settings;
    const onChange = (): void => this.#listeners.changed();
    this.#reader = new EntryReader(parts, { restrictions, lifetimeMs, onChange });
    this.#folder = new SecretFolder(parts, { roots: settings.roots, pollMs: POLL_MS });
  }

  /** Begins to follow the store. */
  start(): void {
    this.#folder.onChange(() => void this.#refresh(), this.#end.signal);
    this.#following ??= this.#folder.follow(this.#end.signal);
  }

  setRoots(roots: readonly string[]): void {
    this.#folder.setRoots(roots);
  }

  async identities(signal: AbortSignal): Promise<readonly SshIdentity[]> {
    this.#isSlow = !(await endsInTime(this.#refresh(), this.#parts.clock, signal));
    return this.known();
  }

  known(): readonly SshIdentity[] {
    const byBlob = new Map<string, StoredIdentity>();
    for (const identity of this.#all()) {
      const key = identity.blob.toString("base64");
      if (!byBlob.has(key)) byBlob.set(key, identity);
    }
    return [...byBlob.values()];
  }

  problem(): string | undefined {
    const { faults, isTruncated } = this.#folder.snapshot;
    const entries = [...this.#entries].flatMap(([path, { fault }]) =>
      fault === undefined ? [] : [`${path}: ${fault}`],
    );
    return problemText([
      ...(this.#isSlow ? [`the store has not answered within ${LISTING_LIMIT_MS / 1000} s`] : []),
      ...[...faults].map(([path, error]) =>
        isStoreWide(error) || path === "" ? publicMessage(error) : `${path}: ${publicMessage(error)}`,
      ),
      ...(isTruncated ? ["there are too many secrets; only some of them were read"] : []),
      ...entries,
    ]);
  }

  /**
   * Opens the keys whose path, comment or fingerprint this is.
   * @returns whether there is one. @throws AgentRefusal if the passphrase opens none of them
   */
  async unlock(name: string, passphrase: Secret, signal: AbortSignal): Promise<boolean> {
    const { identities, nameless } = this.#named(name);
    if (identities.length + nameless.length === 0) return false;
    const results = await Promise.allSettled([
      ...identities.map((each) => each.unlock(passphrase, signal)),
      ...nameless.map(([path]) => this.#unlockNameless(path, passphrase, signal)),
    ]);
    const failures = results.filter((each) => each.status === "rejected");
    if (failures.length === results.length) throw failures[0]?.reason as Error;
    return true;
  }

  /** Whether {@link unlock} finds a key. */
  has(name: string): boolean {
    const { identities, nameless } = this.#named(name);
    return identities.length + nameless.length > 0;
  }

  /** Takes a key that was just made here, so that nobody has to type its passphrase again. */
  keyMade(pair: KeyPair): void {
    if (this.#all().some((each) => each.adopt(pair))) return;
    this.#reader.keyMade(pair);
  }

  forget(): void {
    this.#reader.forget();
    for (const identity of this.#all()) identity.forget();
    // Their encrypted text is read again.
    this.#entries = new Map([...this.#entries].filter(([, { nameless }]) => nameless === undefined));
    this.#listeners.changed();
  }

  /**
   * Looks at the store again, which may have refused to list the keys before.
   * @param isOther another user than before: everything is forgotten
   */
  signedIn(isOther: boolean): void {
    if (isOther) {
      this.forget();
      this.#entries = new Map();
      this.#listeners.changed();
    }
    void this.#refresh();
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    this.forget();
    await this.#following;
    await this.#turns.settled();
  }

  #named(name: string): { identities: StoredIdentity[]; nameless: [string, StoredEntry][] } {
    if (name === "") return { identities: [], nameless: [] };
    return {
      identities: this.#all().filter((each) => [each.path, each.comment, each.fingerprint].includes(name)),
      nameless: [...this.#entries].filter(
        ([path, entry]) => entry.nameless !== undefined && [path, entry.nameless.comment].includes(name),
      ),
    };
  }

  #all(): StoredIdentity[] {
    return [...this.#entries.values()].flatMap(({ identity }) => identity ?? []);
  }

  /** Looks at the store. One look runs, and a maximum of one waits. Never rejects. */
  #refresh(): Promise<void> {
    this.#queued ??= this.#turns.run(async () => {
      this.#queued = undefined;
      try {
        await this.#look(this.#end.signal);
        this.#isSlow = false;
      } catch (error) {
        if (!this.#end.signal.aborted) this.#parts.logger.warn({ err: error }, "cannot look for SSH keys");
      }
    });
    return this.#queued;
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { secrets } = await this.#folder.look(signal);
    const before = this.#entries;
    const found = await Promise.all(
      [...secrets].map(async ([path, version]): Promise<[string, StoredEntry]> => {
        const known = before.get(path);
        const stamp = stampOf(version);
        return [path, known?.version === stamp ? known : await this.#reader.read(path, stamp, known, signal)];
      }),
    );
    // Another user has signed in, or the keys were forgotten: what was read may be of the one before.
    if (this.#entries !== before) return void this.#refresh();
    const next = new Map(found);
    for (const [path, { identity }] of before) if (next.get(path)?.identity !== identity) identity?.forget();
    this.#entries = next;
    const isSame = before.size === next.size && found.every(([path, entry]) => before.get(path) === entry);
    if (!isSame) this.#listeners.changed();
  }

  /** @throws AgentRefusal */
  async #unlockNameless(path: string, passphrase: Secret, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(path);
    const nameless = entry?.nameless;
    if (entry === undefined || nameless === undefined) return;
    const opened = await this.#reader.openNameless(path, { ...entry, nameless }, passphrase, signal);
    if (this.#entries.get(path) !== entry) {
      opened.identity?.forget();
      throw new AgentRefusal(
        "locked",
        `the key ${path} has changed, or was locked again, while it was opened`,
      );
    }
    this.#entries = new Map([...this.#entries, [path, opened]]);
    this.#listeners.changed();
  }
}
