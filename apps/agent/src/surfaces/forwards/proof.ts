import { jsonMember } from "@devplat/base/json-member";
import { HttpClientError, jsonOf } from "@devplat/http-client";
import { requestOverSocket } from "../../peers/socket-request.ts";

/** A daemon answers from memory; the way to the remote host and back takes the rest. In milliseconds. */
const ANSWER_TIMEOUT_MS = 8000;

/**
 * The program at the other end of a socket.
 * - `own`: this daemon.
 * - `foreign`: another program, or one that does not answer.
 * - `nobody`: the connection was not made. A server that denies local forwards looks the same.
 */
export type Proof = "own" | "foreign" | "nobody";

/** Asks for the nonce of our peer socket. @param socketPath of this host */
export async function proofOf(socketPath: string, nonce: string): Promise<Proof> {
  try {
    const answer = await requestOverSocket({ socketPath, path: "/healthz", timeoutMs: ANSWER_TIMEOUT_MS });
    return answer.status === 200 && jsonMember(jsonOf(answer), "nonce") === nonce ? "own" : "foreign";
  } catch (error) {
    return error instanceof HttpClientError && error.code === "unreachable" ? "nobody" : "foreign";
  }
}
