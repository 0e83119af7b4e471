// Serves the daemon's web UI over a state in memory until SIGTERM, for tests that need it as a process of another user.
// Arguments: runtime folder. Prints the URL, and the number of cycles asked for when it ends.
import { silentLogger } from "@devplat/base";
import { MemoryView } from "../../../apps/agent/src/web/memory-view.ts";
import { WebServer } from "../../../apps/agent/src/web/server.ts";

const [runtimeFolder = ""] = process.argv.slice(2);
const view = new MemoryView();
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const server = new WebServer({
  view,
  listen: "127.0.0.1:0",
  requireUnlock: "auto",
  runtimeFolder,
  logger: silentLogger,
});
process.stdout.write(`${await server.listen()}\n`);
await server.run(stop.signal);
process.stdout.write(`cycles ${view.cycles}\n`);
