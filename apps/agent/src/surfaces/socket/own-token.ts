import { Secret } from "@devplat/base";
import { jsonOf } from "@devplat/http-client";
import { z } from "zod";
import type { TokenOffer } from "../../auth/sign-in.ts";
import { requestOverSocket } from "../../peers/socket-request.ts";

/** A daemon responds from memory. In milliseconds. */
const RESPONSE_TIMEOUT_MS = 3000;

const responseSchema = z.object({ token: z.string().min(1) });

/**
 * The token that the user's own running daemon holds, for commands: it may have one that no file keeps (borrowed, by
 * a key that never leaves its device, of another environment).
 *
 * @param socketPath the daemon's API socket
 */
export async function* ownDaemonToken(socketPath: string, signal: AbortSignal): AsyncGenerator<TokenOffer> {
  try {
    const response = await requestOverSocket({
      socketPath,
      path: "/api/v1/token",
      timeoutMs: RESPONSE_TIMEOUT_MS,
      signal,
    });
    const parsed = response.status === 200 ? responseSchema.safeParse(jsonOf(response)) : undefined;
    if (parsed?.success !== true) return;
    yield { token: new Secret(parsed.data.token), borrowedFrom: socketPath };
  } catch {
    // No daemon, or one without a token: the next source.
  }
}
