import { messageOf, type Clock, type Secret } from "@devplat/base";
import { SecretStoreError } from "@devplat/secret-store";
import { SshProtocolError, type KeyPair, type PublicKey } from "@devplat/ssh-protocol";
import { publicMessage } from "../../../errors.ts";
import type { KeyThread } from "../../../key-thread/key-thread.ts";
import type { CachedSecrets } from "../../../secrets/folder/cached-secrets.ts";
import { isStoreWide } from "../../../secrets/store-health.ts";
import { AgentRefusal } from "../agent-refusal.ts";
import type { KeyRestrictions, UserQuestions } from "../identity.ts";
import type { SignInWait } from "./sign-in-wait.ts";
import { StoredIdentity } from "./stored-identity.ts";
import { readStoredKey, type LockedKey, type StoredKey } from "./stored-key.ts";

/** A new key waits this long for its secret, in milliseconds, as a credential that could not be stored waits for a retry. */
const MADE_KEY_MS = 15 * 60_000;
const MAX_MADE_KEYS = 8;

/** One secret. Secrets without a key have neither an identity nor a fault. */
export interface StoredEntry {
  /** Undefined: it is read again with the next listing. */
  readonly version: string | undefined;
  readonly identity?: StoredIdentity;
  readonly fault?: string;
  /** A key whose public half is not known before it is unlocked. */
  readonly nameless?: { readonly locked: LockedKey; readonly comment: string };
}

export interface EntryReaderParts {
  readonly secrets: Pick<CachedSecrets, "read">;
  readonly signIn: Pick<SignInWait, "settled">;
  readonly opener: Pick<KeyThread, "open">;
  readonly questions: Pick<UserQuestions, "passphrase">;
  readonly clock: Clock;
}

export interface EntryReaderSettings {
  readonly restrictions: KeyRestrictions;
  /** How long a key with a passphrase stays usable, in milliseconds. */
  readonly lifetimeMs: () => number;
  /** The state of a key has changed. */
  readonly onChange: () => void;
}

/** Reads secrets of the store and makes SSH keys of them. */
export class EntryReader {
  readonly #parts: EntryReaderParts;
  readonly #settings: EntryReaderSettings;
  /** Keys that were just made here, until their secret is read. */
  #made: { readonly pair: KeyPair; readonly until: number }[] = [];

  constructor(parts: EntryReaderParts, settings: EntryReaderSettings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /** Takes a key that was just made here: the secret that has it needs no passphrase. */
  keyMade(pair: KeyPair): void {
    const until = this.#parts.clock.monotonic() + MADE_KEY_MS;
    this.#made = [...this.#made.slice(1 - MAX_MADE_KEYS), { pair, until }];
  }

  /** Forgets the keys that were made here. */
  forget(): void {
    this.#made = [];
  }

  /**
   * Reads a secret. A fault of the secret or of the store is in the result.
   *
   * @param known its entry before @throws the reason of the signal
   */
  async read(
    path: string,
    version: string,
    known: StoredEntry | undefined,
    signal: AbortSignal,
  ): Promise<StoredEntry> {
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

  /** Opens a key whose public half is not known. @throws AgentRefusal `passphrase_wrong` | `key_unusable` */
  async openNameless(
    path: string,
    { version, nameless }: StoredEntry & { readonly nameless: NonNullable<StoredEntry["nameless"]> },
    passphrase: Secret,
    signal: AbortSignal,
  ): Promise<StoredEntry> {
    const { locked, comment } = nameless;
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
    const identity = this.#identity(path, pair.publicKey, comment, { locked }, undefined);
    identity.adopt(pair);
    return { version, identity };
  }

  /** A key whose public half shows only when it is opened. */
  async #readNameless(
    path: string,
    version: string,
    nameless: NonNullable<StoredEntry["nameless"]>,
    signal: AbortSignal,
  ): Promise<StoredEntry> {
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
        onChange: this.#settings.onChange,
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
}
