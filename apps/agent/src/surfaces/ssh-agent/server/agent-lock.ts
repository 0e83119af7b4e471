import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import type { Clock, Secret } from "@devplat/base";
import { TokenBucket } from "@devplat/base/token-bucket";

/** Wrong passphrases in a row, and the time after which as many are permitted again. */
const MAX_TRIES = 5;
const TRIES_MS = 60_000;
const SALT_BYTES = 16;
const DIGEST_BYTES = 32;

const derive = promisify<Buffer, Buffer, number, Buffer>(scrypt);

/** The lock of `ssh-add -x`. The passphrase itself is not kept. */
export class AgentLock {
  readonly #tries: TokenBucket;
  #locked: { readonly salt: Buffer; readonly digest: Buffer } | undefined;
  #isBusy = false;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#tries = new TokenBucket({ capacity: MAX_TRIES, refillMs: TRIES_MS, clock });
  }

  get isLocked(): boolean {
    return this.#locked !== undefined;
  }

  /** @returns false if it is locked already */
  async lock(passphrase: Secret<Buffer>): Promise<boolean> {
    return await this.#alone(async () => {
      if (this.isLocked) return false;
      const salt = randomBytes(SALT_BYTES);
      this.#locked = { salt, digest: await derive(passphrase.reveal(), salt, DIGEST_BYTES) };
      return true;
    });
  }

  /** @returns false for a wrong passphrase, after too many of them, and if it is not locked */
  async unlock(passphrase: Secret<Buffer>): Promise<boolean> {
    return await this.#alone(async () => {
      if (this.#locked === undefined || this.#tries.take("") > 0) return false;
      const { salt, digest } = this.#locked;
      if (!timingSafeEqual(await derive(passphrase.reveal(), salt, DIGEST_BYTES), digest)) return false;
      this.#tries.giveBack("");
      this.#locked = undefined;
      return true;
    });
  }

  /** Concurrent tries would not be limited by the work that one costs. */
  async #alone(action: () => Promise<boolean>): Promise<boolean> {
    if (this.#isBusy) return false;
    this.#isBusy = true;
    try {
      return await action();
    } finally {
      this.#isBusy = false;
    }
  }
}
