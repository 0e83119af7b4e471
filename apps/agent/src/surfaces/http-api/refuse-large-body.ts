import type { IncomingMessage } from "node:http";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { Environment } from "./environment.ts";

/** Maximum rest of a refused body that is read and dropped, in bytes, and the time for it in milliseconds. */
const MAX_DROPPED_BYTES = 8 * 1024 * 1024;
const DROP_LIMIT_MS = 3000;

/**
 * Refuses a larger body. Many clients send all of it before they read the response, and a connection that is closed before
 * shows them an error of the connection instead. So the rest of the body is read first, within limits.
 *
 * @param maxSize in bytes
 */
export function refuseLargeBody(
  maxSize: number,
  refuse: (c: Context<Environment>) => Response | Promise<Response>,
): MiddlewareHandler<Environment> {
  return bodyLimit({
    maxSize,
    onError: async (c: Context<Environment>) => {
      await dropRest(c.env.incoming);
      return await refuse(c);
    },
  });
}

/** Never rejects. */
async function dropRest(incoming: IncomingMessage): Promise<void> {
  if (incoming.complete || incoming.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, DROP_LIMIT_MS);
  let bytes = 0;
  const count = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > MAX_DROPPED_BYTES) resolve();
  };
  // The web stream over the request pauses it, because nothing reads there.
  const goOn = (): void => void incoming.resume();
  incoming.on("data", count).on("pause", goOn).once("close", resolve).once("end", resolve);
  incoming.once("error", () => resolve());
  goOn();
  await promise;
  clearTimeout(timer);
  incoming.off("data", count).off("pause", goOn).pause();
}
