/** Code of the thread that opens or encrypts one private key. It sends one message and ends. */
import { parentPort, workerData } from "node:worker_threads";
import { Secret } from "@devplat/base";
import { SshProtocolError, encodeOpenSshKey, readPrivateKey } from "@devplat/ssh-protocol";
import type { KeyJob, KeyJobResult } from "./key-job.ts";

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
parentPort?.postMessage(resultOf(workerData as KeyJob));

function resultOf(job: KeyJob): KeyJobResult {
  const passphrase = new Secret(job.passphrase);
  try {
    if (job.kind === "encode") {
      return { text: encodeOpenSshKey(job.privateKey, { comment: job.comment, passphrase }) };
    }
    const reading = readPrivateKey(job.text, passphrase);
    return reading.state === "open" ? { privateKey: reading.privateKey } : { failure: undefined };
  } catch (error) {
    if (!(error instanceof SshProtocolError)) return { failure: undefined };
    return { failure: { code: error.code, message: error.message } };
  }
}
