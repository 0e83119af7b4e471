import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";

/** Every byte between a socket here and one elsewhere, as `ssh -R socket:socket` carries them. */
export async function forwardSocket(path: string, target: string): Promise<{ stop(): Promise<void> }> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = createConnection({ path: target, allowHalfOpen: true });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from);
      from.pipe(to);
      // Where nobody listens, ssh closes the channel.
      from.on("error", () => to.destroy());
      from.on("close", () => open.delete(from));
    }
  });
  server.listen(path);
  await once(server, "listening");
  return {
    stop: async () => {
      const closed = once(server, "close");
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
