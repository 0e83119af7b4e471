import { once } from "node:events";
import { createServer } from "node:net";

/**
 * A TCP port of 127.0.0.1 that was free a moment ago, for programs that cannot be told to pick one. Another
 * process may take it before the caller does: start-ups that use it try again.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new TypeError("a TCP server has a port");
  return address.port;
}
