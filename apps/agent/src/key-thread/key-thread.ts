import type { KeyObject } from "node:crypto";
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { systemClock, type Clock, type Secret } from "@devplat/base";
import { Semaphore } from "@devplat/base/semaphore";
import type { KeyPair } from "@devplat/ssh-protocol";
import type { KeyJob, KeyJobResult } from "./key-job.ts";

/** Time limit of one key derivation, in milliseconds. The most rounds that are read take half of it. */
const LIMIT_MS = 60_000;
/** One thread in the process: the key derivation takes all of a processor, and the compilers are switched for it. */
const turns = new Semaphore(1);

/**
 * Opens and encrypts private keys with a passphrase, each in a thread of its own: the key derivation takes half a second or
 * more, and the memory of the thread with the passphrase is free again afterwards.
 */
export class KeyThread {
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** @throws SshProtocolError, `wrong_passphrase` among others; the reason of the signal */
  async open(text: Secret, passphrase: Secret, signal: AbortSignal): Promise<KeyPair> {
    const { publicKeyOf } = await import("@devplat/ssh-protocol");
    const job = { kind: "open", text: text.reveal(), passphrase: passphrase.reveal() } as const;
    const result = await this.#run(job, signal);
    if (!("privateKey" in result)) throw await failureOf(result);
    return { publicKey: publicKeyOf(result.privateKey), privateKey: result.privateKey };
  }

  /** The text of the key in OpenSSH's format. @throws SshProtocolError; the reason of the signal */
  async encode(
    privateKey: KeyObject,
    { comment, passphrase }: { readonly comment: string; readonly passphrase: Secret },
    signal: AbortSignal,
  ): Promise<string> {
    const job = { kind: "encode", privateKey, comment, passphrase: passphrase.reveal() } as const;
    const result = await this.#run(job, signal);
    if (!("text" in result)) throw await failureOf(result);
    return result.text;
  }

  async #run(job: KeyJob, signal: AbortSignal): Promise<KeyJobResult> {
    const release = await turns.acquire(signal);
    const end = withCompilers();
    try {
      signal.throwIfAborted();
      return await this.#result(job, signal);
    } finally {
      end();
      release();
    }
  }

  async #result(job: KeyJob, signal: AbortSignal): Promise<KeyJobResult> {
    const worker = new Worker(new URL("key-worker.ts", import.meta.url), { workerData: job, env: {} });
    const { promise, resolve, reject } = Promise.withResolvers<KeyJobResult>();
    const fail = (): void => resolve({ failure: undefined });
    const giveUp = (): void => reject(signal.reason as Error);
    worker.on("message", resolve).on("error", fail).on("exit", fail);
    signal.addEventListener("abort", giveUp, { once: true });
    const timer = new AbortController();
    const tooLong = "the key derivation of the private key takes too long";
    this.#clock.sleep(LIMIT_MS, timer.signal).then(
      () => resolve({ failure: { code: "too_long", message: tooLong } }),
      () => undefined,
    );
    try {
      return await promise;
    } finally {
      timer.abort();
      signal.removeEventListener("abort", giveUp);
      // Not awaited: a derivation by OpenSSL cannot be interrupted.
      void worker.terminate();
    }
  }
}

/** The daemon runs without V8's optimizing compilers, to save memory. Without them one round takes 25 times as long. */
const COMPILERS = ["opt", "maglev"].filter((name) => process.execArgv.includes(`--no-${name}`));

/** Turns the compilers on, for all threads. @returns the function that turns them off again */
function withCompilers(): () => void {
  for (const name of COMPILERS) setFlagsFromString(`--${name}`);
  return () => {
    for (const name of COMPILERS) setFlagsFromString(`--no-${name}`);
  };
}

async function failureOf(result: KeyJobResult): Promise<Error> {
  const { SshProtocolError } = await import("@devplat/ssh-protocol");
  const failure = "failure" in result ? result.failure : undefined;
  return failure === undefined
    ? new SshProtocolError("bad_key", "the private key cannot be read")
    : new SshProtocolError(failure.code, failure.message);
}
