import { messageOf, type Clock, type Logger, type Secret } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { SecretStoreError } from "@devplat/secret-store";
import { SshProtocolError, type KeyPair, type PublicKey } from "@devplat/ssh-protocol";
import { publicMessage } from "../../../errors.ts";
import type { CachedSecrets, SecretVersion } from "../../../secrets/folder/cached-secrets.ts";
import { SecretFolder } from "../../../secrets/folder/secret-folder.ts";
import type { StoreChanges } from "../../../secrets/folder/store-changes.ts";
import { isStoreWide } from "../../../secrets/store-health.ts";
import { AgentRefusal } from "../agent-refusal.ts";
import type { IdentitySource, KeyRestrictions, SshIdentity, UserQuestions } from "../identity.ts";
import { ChangeListeners } from "../../../change-listeners.ts";
import type { KeyThread } from "../../../key-thread/key-thread.ts";
import { LISTING_LIMIT_MS, endsInTime } from "./listing-limit.ts";
import type { SignInWait } from "./sign-in-wait.ts";
import { problemText } from "./problem-text.ts";
import { StoredIdentity } from "./stored-identity.ts";
import { readStoredKey, type LockedKey, type StoredKey } from "./stored-key.ts";

/** Interval between looks at the store while it reports no changes, in milliseconds. A listing looks itself. */
const POLL_MS = 5 * 60_000;
/** A new key waits this long for its secret, in milliseconds, as a credential that could not be stored waits for a retry. */
const MADE_KEY_MS = 15 * 60_000;
const MAX_MADE_KEYS = 8;

export interface StoredKeysParts {
  readonly secrets: CachedSecrets;
  readonly changes: StoreChanges;
  readonly signIn: Pick<SignInWait, "settled">;
  readonly opener: Pick<KeyThread, "open">;
  readonly questions: Pick<UserQuestions, "passphrase">;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface StoredKeysSettings {
  readonly name: string;
  readonly kind: "kv" | "enrolments";
  /** Paths of secrets and folders. */
  readonly roots: readonly string[];
  readonly restrictions: KeyRestrictions;
  /** How long a key with a passphrase stays usable, in milliseconds. */
  readonly lifetimeMs: () => number;
}

/** One secret. Secrets without a key have neither an identity nor a fault. */
interface Entry {
  /** Undefined: it is read again with the next listing. */
  readonly version: string | undefined;
  readonly identity?: StoredIdentity;
  readonly fault?: string;
  /** A key whose public half is not known before it is unlocked. */
  readonly nameless?: { readonly locked: LockedKey; readonly comment: string };
}

/** SSH keys of secrets of the store. A secret that cannot be read or holds no sound key does not hide another. */
export class StoredKeysSource implements IdentitySource {
  readonly name: string;
  readonly kind: StoredKeysSettings["kind"];
  readonly #parts: StoredKeysParts;
  readonly #settings: StoredKeysSettings;
  readonly #folder: SecretFolder;
  readonly #listeners = new ChangeListeners();
  readonly #turns = new Serializer();
  readonly #end = new AbortController();
  #queued: Promise<void> | undefined;
  #following: Promise<void> | undefined;
  #entries: ReadonlyMap<string, Entry> = new Map();
  #isSlow = false;
  /** Keys that were just made here, until their secret is listed. */
  #made: { readonly pair: KeyPair; readonly until: number }[] = [];

  constructor(parts: StoredKeysParts, settings: StoredKeysSettings) {
    this.name = settings.name;
    this.kind = settings.kind;
    this.#parts = parts;
    this.#settings = settings;
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
    const identities = this.#all().filter((each) =>
      [each.path, each.comment, each.fingerprint].includes(name),
    );
    const nameless = [...this.#entries].filter(
      ([path, entry]) => entry.nameless !== undefined && [path, entry.nameless.comment].includes(name),
    );
    if (name === "" || identities.length + nameless.length === 0) return false;
    const results = await Promise.allSettled([
      ...identities.map((each) => each.unlock(passphrase, signal)),
      ...nameless.map(([path]) => this.#unlockNameless(path, passphrase, signal)),
    ]);
    const failures = results.filter((each) => each.status === "rejected");
    if (failures.length === results.length) throw failures[0]?.reason as Error;
    return true;
  }

  /** Takes a key that was just made here, so that nobody has to type its passphrase again. */
  keyMade(pair: KeyPair): void {
    if (this.#all().some((each) => each.adopt(pair))) return;
    const until = this.#parts.clock.monotonic() + MADE_KEY_MS;
    this.#made = [...this.#made.slice(1 - MAX_MADE_KEYS), { pair, until }];
  }

  forget(): void {
    this.#made = [];
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
      [...secrets].map(async ([path, version]): Promise<[string, Entry]> => {
        const known = before.get(path);
        const stamp = stampOf(version);
        return [path, known?.version === stamp ? known : await this.#read(path, stamp, known, signal)];
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

  async #read(path: string, version: string, known: Entry | undefined, signal: AbortSignal): Promise<Entry> {
    try {
      const key = await this.#key(path, signal);
      if (key === undefined) return { version };
      const { publicKey, comment, privateHalf } = key;
      if (publicKey !== undefined) {
        return { version, identity: this.#identity(path, publicKey, comment, privateHalf, known?.identity) };
      }
      return "locked" in privateHalf
        ? await this.#readNameless(path, version, { locked: privateHalf.locked, comment }, signal)
        : { version };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SshProtocolError) return { version, fault: messageOf(error) };
      const fault = publicMessage(error);
      // A known key stays usable while the store is down.
      const isUsable =
        error instanceof SecretStoreError && isStoreWide(error) && known?.identity !== undefined;
      return { version: undefined, fault, ...(isUsable && { identity: known.identity }) };
    }
  }

  /** A key whose public half shows only when it is opened. */
  async #readNameless(
    path: string,
    version: string,
    nameless: NonNullable<Entry["nameless"]>,
    signal: AbortSignal,
  ): Promise<Entry> {
    const { locked, comment } = nameless;
    const entry = {
      version,
      nameless,
      fault: "its public half is not known before it is unlocked; add the field public_key to the secret",
    };
    if (locked.passphrase === undefined) return entry;
    try {
      const pair = await this.#parts.opener.open(locked.text, locked.passphrase, signal);
      const identity = this.#identity(path, pair.publicKey, comment, { locked }, undefined);
      identity.adopt(pair);
      return { version, identity };
    } catch (error) {
      if (error instanceof SshProtocolError && error.code === "wrong_passphrase") return entry;
      throw error;
    }
  }

  /** @throws SecretStoreError, SshProtocolError */
  async #key(path: string, signal: AbortSignal): Promise<StoredKey | undefined> {
    return readStoredKey((await this.#parts.secrets.read(path, signal)).fields);
  }

  #identity(
    path: string,
    publicKey: PublicKey,
    comment: string,
    privateHalf: StoredKey["privateHalf"],
    before: StoredIdentity | undefined,
  ): StoredIdentity {
    const { opener, questions, clock, signIn } = this.#parts;
    const { restrictions, lifetimeMs } = this.#settings;
    const identity = new StoredIdentity(
      {
        path,
        publicKey,
        comment: comment === "" ? path : comment,
        restrictions,
        lifetimeMs,
        reload: async (signal) => {
          await signIn.settled(signal);
          const key = await this.#key(path, signal);
          if (key === undefined)
            throw new SshProtocolError("bad_text", "the secret has no private key any more");
          return key.privateHalf;
        },
        opener,
        questions,
        onChange: () => this.#listeners.changed(),
        clock,
      },
      privateHalf,
    );
    // A new version of the secret with the same key needs no passphrase again.
    const unlocked = before?.unlocked;
    if (unlocked !== undefined) identity.adopt(unlocked.pair, unlocked);
    const now = clock.monotonic();
    this.#made = this.#made.filter(({ pair, until }) => now < until && !identity.adopt(pair));
    return identity;
  }

  /** @throws AgentRefusal */
  async #unlockNameless(path: string, passphrase: Secret, signal: AbortSignal): Promise<void> {
    const before = this.#entries;
    const entry = before.get(path);
    if (entry?.nameless === undefined) return;
    const { locked, comment } = entry.nameless;
    let pair: KeyPair;
    try {
      pair = await this.#parts.opener.open(locked.text, passphrase, signal);
    } catch (error) {
      if (!(error instanceof SshProtocolError)) throw error;
      const isWrong = error.code === "wrong_passphrase";
      throw new AgentRefusal(
        isWrong ? "passphrase_wrong" : "key_unusable",
        `cannot open the key ${path}: ${messageOf(error)}`,
      );
    }
    if (this.#entries.get(path) !== entry) {
      throw new AgentRefusal(
        "locked",
        `the key ${path} has changed, or was locked again, while it was opened`,
      );
    }
    const identity = this.#identity(path, pair.publicKey, comment, { locked }, undefined);
    identity.adopt(pair);
    this.#entries = new Map([...this.#entries, [path, { version: entry.version, identity }]]);
    this.#listeners.changed();
  }
}

function stampOf({ version, createdAt }: SecretVersion): string {
  return `${version}@${createdAt}`;
}
