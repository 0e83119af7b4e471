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
 * - `forward`: this daemon, by its forward to another remote.
 */
export type Proof = "own" | "foreign" | "nobody" | { readonly forward: string };

/**
 * Asks for the nonce of our peer socket.
 *
 * @param socketPath of this host
 * @param hostOf the remote whose peer socket has a nonce
 */
export async function proofOf(
  socketPath: string,
  nonce: string,
  hostOf: (nonce: string) => string | undefined = () => undefined,
): Promise<Proof> {
  try {
    const answer = await requestOverSocket({ socketPath, path: "/healthz", timeoutMs: ANSWER_TIMEOUT_MS });
    const shown = answer.status === 200 ? jsonMember(jsonOf(answer), "nonce") : undefined;
    if (shown === nonce) return "own";
    const forward = typeof shown === "string" ? hostOf(shown) : undefined;
    return forward === undefined ? "foreign" : { forward };
  } catch (error) {
    return error instanceof HttpClientError && error.code === "unreachable" ? "nobody" : "foreign";
  }
}
