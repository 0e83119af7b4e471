import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Ports that no system gives out by itself, neither to who listens on port 0 nor to who connects (Linux from 32768 on,
 * others from 49152 on): between the look and the start only another caller of this takes one.
 */
const LOWEST = 15_000;
const HIGHEST = 32_000;

/**
 * A TCP port of 127.0.0.1 that was free a moment ago, for programs that cannot be told to pick one. Another
 * process may take it before the caller does: start-ups that use it try again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    const server = createServer();
    server.listen(port, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch {
      // Somebody has it.
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
