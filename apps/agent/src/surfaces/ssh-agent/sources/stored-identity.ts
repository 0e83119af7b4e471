import { messageOf, type Clock, type Secret } from "@devplat/base";
import {
  SshProtocolError,
  encodePublicKey,
  fingerprint,
  sign,
  type KeyPair,
  type PublicKey,
} from "@devplat/ssh-protocol";
import { BRAND } from "../../../brand.ts";
import { publicMessage } from "../../../errors.ts";
import { SharedRequests } from "../../../secrets/folder/shared-requests.ts";
import { AgentRefusal } from "../agent-refusal.ts";
import type { KeyRestrictions, SshIdentity, UserQuestions } from "../identity.ts";
import type { KeyThread } from "../../../key-thread/key-thread.ts";
import { isSame, type LockedKey, type StoredKey } from "./stored-key.ts";

/** Wrong passphrases for one signature. After them the client has to ask again. */
const MAX_TRIES = 3;

export interface StoredIdentityParts {
  /** Path of the secret. */
  readonly path: string;
  readonly publicKey: PublicKey;
  readonly comment: string;
  readonly restrictions: KeyRestrictions;
  /** How long a key with a passphrase stays usable, in milliseconds. */
  readonly lifetimeMs: () => number;
  /** Reads the secret again, after {@link StoredIdentity.forget}. @throws SecretStoreError, SshProtocolError */
  readonly reload: (signal: AbortSignal) => Promise<StoredKey["privateHalf"]>;
  readonly opener: Pick<KeyThread, "open">;
  readonly questions: Pick<UserQuestions, "passphrase">;
  /** The state has changed. */
  readonly onChange: () => void;
  readonly clock: Clock;
}

/** A key that was opened with a passphrase, and its end. */
export interface UnlockedKey {
  readonly pair: KeyPair;
  /** Milliseconds since the epoch, and by the monotonic clock. A clock that is set does not prolong it. */
  readonly until: number;
  readonly monotonicUntil: number;
}

/** An SSH key of a secret. */
export class StoredIdentity implements SshIdentity {
  readonly blob: Buffer;
  readonly fingerprint: string;
  readonly certificateExpiresAt = undefined;
  readonly #parts: StoredIdentityParts;
  readonly #opening = new SharedRequests<KeyPair>();
  /** Undefined after {@link forget}. */
  #privateHalf: StoredKey["privateHalf"] | undefined;
  readonly #isLocked: boolean;
  readonly #hasStoredPassphrase: boolean;
  #unlocked: UnlockedKey | undefined;
  #timer = new AbortController();
  /** Counts calls of {@link forget}. A key that was opened before the last one is not kept. */
  #forgets = 0;
  /** Ends the question to the user, because the key was unlocked in another way. */
  #onUnlocked: (() => void) | undefined;

  constructor(parts: StoredIdentityParts, privateHalf: StoredKey["privateHalf"]) {
    this.#parts = parts;
    this.#privateHalf = privateHalf;
    this.#isLocked = "locked" in privateHalf;
    this.#hasStoredPassphrase = "locked" in privateHalf && privateHalf.locked.passphrase !== undefined;
    this.blob = encodePublicKey(parts.publicKey);
    this.fingerprint = fingerprint(this.blob);
  }

  get path(): string {
    return this.#parts.path;
  }

  get comment(): string {
    return this.#parts.comment;
  }

  get restrictions(): KeyRestrictions {
    return this.#parts.restrictions;
  }

  get state(): SshIdentity["state"] {
    if (!this.#isLocked) return "ready";
    if (this.unlocked !== undefined) return "unlocked";
    return this.#hasStoredPassphrase ? "ready" : "needs-passphrase";
  }

  get unlockedUntil(): number | undefined {
    return this.unlocked?.until;
  }

  get unlocked(): UnlockedKey | undefined {
    const { clock } = this.#parts;
    const unlocked = this.#unlocked;
    if (unlocked === undefined) return undefined;
    const isOver = clock.now() >= unlocked.until || clock.monotonic() >= unlocked.monotonicUntil;
    return isOver ? undefined : unlocked;
  }

  async sign(data: Buffer, rsaHash: "sha256" | "sha512" | undefined, signal: AbortSignal): Promise<Buffer> {
    const pair = this.unlocked?.pair ?? (await this.#opening.get("", signal, (inner) => this.#open(inner)));
    return sign(pair, data, rsaHash === "sha256" ? "rsa-sha2-256" : "rsa-sha2-512");
  }

  /** Opens the key. @throws AgentRefusal `passphrase_wrong` | `key_unusable` | `locked` */
  async unlock(passphrase: Secret, signal: AbortSignal): Promise<void> {
    const forgets = this.#forgets;
    const half = await this.#half(signal);
    if ("open" in half) return;
    const pair = await this.#tried(half.locked, passphrase, signal);
    if (pair === undefined) {
      throw new AgentRefusal("passphrase_wrong", `the passphrase does not open the key ${this.#name()}`);
    }
    this.#keep(pair, forgets);
  }

  /** Takes a key that was opened elsewhere, if it is this one. @returns whether it is */
  adopt(pair: KeyPair, end?: Pick<UnlockedKey, "until" | "monotonicUntil">): boolean {
    if (!isSame(pair.publicKey, this.#parts.publicKey)) return false;
    if (this.#isLocked) this.#keep(pair, this.#forgets, end);
    return true;
  }

  /** Removes the private key from memory. The next signature reads the secret again. */
  forget(): void {
    this.#forgets++;
    this.#privateHalf = undefined;
    this.#drop();
  }

  async #open(signal: AbortSignal): Promise<KeyPair> {
    const forgets = this.#forgets;
    const half = await this.#half(signal);
    if ("open" in half) return half.open;
    const { locked } = half;
    if (locked.passphrase !== undefined) {
      const pair = await this.#tried(locked, locked.passphrase, signal);
      if (pair !== undefined) return this.#keep(pair, forgets);
    }
    for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
      const passphrase = await this.#asked(attempt > 0, signal);
      if (this.unlocked !== undefined) return this.unlocked.pair;
      if (passphrase === undefined) {
        throw new AgentRefusal(
          "not_confirmed",
          `nobody has typed the passphrase of the key ${this.#name()}`,
          { hint: `Run '${BRAND.command} keys unlock'.` },
        );
      }
      const pair = await this.#tried(locked, passphrase, signal);
      if (pair !== undefined) return this.#keep(pair, forgets);
    }
    throw new AgentRefusal("passphrase_wrong", `no passphrase has opened the key ${this.#name()}`);
  }

  /** @throws AgentRefusal `key_unusable` */
  async #half(signal: AbortSignal): Promise<StoredKey["privateHalf"]> {
    if (this.#privateHalf !== undefined) return this.#privateHalf;
    const forgets = this.#forgets;
    let half: StoredKey["privateHalf"];
    try {
      half = await this.#parts.reload(signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `cannot read the key ${this.#name()} again: ${publicMessage(error)}`;
      throw new AgentRefusal("key_unusable", message, { cause: error });
    }
    if ("open" in half && !isSame(half.open.publicKey, this.#parts.publicKey)) throw this.#differs();
    if (forgets === this.#forgets) this.#privateHalf = half;
    return half;
  }

  /** The user's answer; undefined without one. */
  async #asked(wrongBefore: boolean, signal: AbortSignal): Promise<Secret | undefined> {
    const unlocked = new AbortController();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#onUnlocked = () => resolve(undefined);
    const key = { comment: this.#name(), fingerprint: this.fingerprint, wrongBefore };
    try {
      const limit = AbortSignal.any([signal, unlocked.signal]);
      const answer = this.#parts.questions.passphrase(key, limit);
      // Its end by our own signal is not a failure.
      answer.catch(() => undefined);
      return await Promise.race([answer, promise]);
    } finally {
      this.#onUnlocked = undefined;
      unlocked.abort();
    }
  }

  /** The opened key; undefined for a wrong passphrase. @throws AgentRefusal `key_unusable` */
  async #tried(locked: LockedKey, passphrase: Secret, signal: AbortSignal): Promise<KeyPair | undefined> {
    let pair: KeyPair;
    try {
      pair = await this.#parts.opener.open(locked.text, passphrase, signal);
    } catch (error) {
      if (!(error instanceof SshProtocolError)) throw error;
      if (error.code === "wrong_passphrase") return undefined;
      throw new AgentRefusal("key_unusable", `cannot open the key ${this.#name()}: ${messageOf(error)}`);
    }
    if (!isSame(pair.publicKey, this.#parts.publicKey)) throw this.#differs();
    return pair;
  }

  #keep(pair: KeyPair, forgets: number, end?: Pick<UnlockedKey, "until" | "monotonicUntil">): KeyPair {
    if (forgets !== this.#forgets) {
      throw new AgentRefusal("locked", `the key ${this.#name()} was locked again while it was opened`);
    }
    const { clock, lifetimeMs } = this.#parts;
    const until = end?.until ?? clock.now() + lifetimeMs();
    const monotonicUntil = end?.monotonicUntil ?? clock.monotonic() + lifetimeMs();
    this.#timer.abort();
    this.#timer = new AbortController();
    this.#unlocked = { pair, until, monotonicUntil };
    clock.sleep(Math.max(0, monotonicUntil - clock.monotonic()), this.#timer.signal).then(
      () => this.#drop(),
      () => undefined,
    );
    this.#onUnlocked?.();
    this.#parts.onChange();
    return pair;
  }

  #drop(): void {
    this.#timer.abort();
    if (this.#unlocked === undefined) return;
    this.#unlocked = undefined;
    this.#parts.onChange();
  }

  #differs(): AgentRefusal {
    return new AgentRefusal(
      "key_unusable",
      `the private key of ${this.#name()} belongs to another public key`,
    );
  }

  /** The path tells keys apart whose comments are the same. */
  #name(): string {
    const { path, comment } = this.#parts;
    return comment === path ? path : `${path} (${comment})`;
  }
}
