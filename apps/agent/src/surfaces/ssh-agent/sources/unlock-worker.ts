/** Code of the thread that opens one private key under a passphrase. It sends one message and ends. */
import type { KeyObject } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { Secret } from "@devplat/base";
import { SshProtocolError, readPrivateKey, type SshErrorCode } from "@devplat/ssh-protocol";

export interface UnlockJob {
  readonly text: string;
  readonly passphrase: string;
}

export type UnlockResult =
  | { readonly privateKey: KeyObject }
  /** Messages of the format's own errors never quote the key. Of other errors nothing is sent. */
  | { readonly failure: { readonly code: SshErrorCode; readonly message: string } | undefined };

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
parentPort?.postMessage(unlock(workerData as UnlockJob));

function unlock({ text, passphrase }: UnlockJob): UnlockResult {
  try {
    const reading = readPrivateKey(text, new Secret(passphrase));
    return reading.state === "open" ? { privateKey: reading.privateKey } : { failure: undefined };
  } catch (error) {
    if (!(error instanceof SshProtocolError)) return { failure: undefined };
    return { failure: { code: error.code, message: error.message } };
  }
}
