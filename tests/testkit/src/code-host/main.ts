/** A code host as a process of its own; {@link startCodeHostProcess} starts it and speaks to it by messages. */
import { rename } from "node:fs/promises";
import { startCodeHost } from "./code-host.ts";
import type { RemoteMessage, RemoteRequest } from "./remote.ts";

const host = await startCodeHost();
process.on("message", (request: RemoteRequest) => {
  answer(request).then(send, (error: unknown) => {
    send({ id: request.id, failed: error instanceof Error ? error.message : String(error) });
  });
});
// The parent is gone: so is the reason to be here.
process.on("disconnect", () => void host.stop());
send({ hello: { url: host.url, root: host.root } });

async function answer(request: RemoteRequest): Promise<RemoteMessage> {
  const result = await perform(request);
  if (request.call === "stop") setImmediate(() => process.disconnect?.());
  return { id: request.id, result };
}

async function perform(request: RemoteRequest): Promise<unknown> {
  if (request.call === "calls") return host.calls;
  if (request.call === "adopt") {
    const [owner, name, path, hidden] = request.args;
    return host.addRepository(owner, name, { private: hidden, build: (dir) => rename(path, dir) });
  }
  const method = host[request.call] as (...args: readonly unknown[]) => unknown;
  return method(...request.args);
}

function send(message: RemoteMessage): void {
  process.send?.(message);
}
