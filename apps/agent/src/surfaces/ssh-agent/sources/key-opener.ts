import { Worker } from "node:worker_threads";
import type { Clock, Secret } from "@devplat/base";
import { Semaphore } from "@devplat/base/semaphore";
import { SshProtocolError, publicKeyOf, type KeyPair } from "@devplat/ssh-protocol";
import type { UnlockJob, UnlockResult } from "./unlock-worker.ts";

/** Concurrent threads. The key derivation takes all of a processor. */
const MAX_THREADS = 2;
/** Time limit of one key derivation, in milliseconds. The most rounds that are read take half of it. */
const LIMIT_MS = 60_000;

/**
 * Opens private keys under a passphrase, each in a thread of its own: the key derivation takes half a second or more, and
 * the memory of the thread with the passphrase is free again afterwards.
 */
export class KeyOpener {
  readonly #clock: Clock;
  readonly #turns = new Semaphore(MAX_THREADS);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws SshProtocolError, `wrong_passphrase` among others; the reason of the signal */
  async open(text: Secret, passphrase: Secret, signal: AbortSignal): Promise<KeyPair> {
    const release = await this.#turns.acquire(signal);
    try {
      signal.throwIfAborted();
      return await this.#run({ text: text.reveal(), passphrase: passphrase.reveal() }, signal);
    } finally {
      release();
    }
  }

  async #run(job: UnlockJob, signal: AbortSignal): Promise<KeyPair> {
    const worker = new Worker(new URL("unlock-worker.ts", import.meta.url), { workerData: job, env: {} });
    const { promise, resolve, reject } = Promise.withResolvers<UnlockResult>();
    const fail = (): void => reject(new SshProtocolError("unsupported", "the private key cannot be opened"));
    const giveUp = (): void => reject(signal.reason as Error);
    worker.on("message", resolve).on("error", fail).on("exit", fail);
    signal.addEventListener("abort", giveUp, { once: true });
    const timer = new AbortController();
    this.#clock.sleep(LIMIT_MS, timer.signal).then(
      () => reject(new SshProtocolError("too_long", "the key derivation of the private key takes too long")),
      () => undefined,
    );
    try {
      const result = await promise;
      if ("privateKey" in result) {
        return { publicKey: publicKeyOf(result.privateKey), privateKey: result.privateKey };
      }
      if (result.failure === undefined)
        throw new SshProtocolError("bad_key", "the private key cannot be read");
      throw new SshProtocolError(result.failure.code, result.failure.message);
    } finally {
      timer.abort();
      signal.removeEventListener("abort", giveUp);
      // Not awaited: a derivation by OpenSSL cannot be interrupted.
      void worker.terminate();
    }
  }
}
