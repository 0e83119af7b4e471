// Serves the daemon's web UI over a state in memory until SIGTERM, for tests that need it as a process of another user.
// Arguments: runtime folder. Prints the URL, and the number of cycles asked for when it ends.
import { once } from "node:events";
import { startTestServer } from "../../../apps/agent/src/web/server.test-kit.ts";

const [runtimeFolder = ""] = process.argv.slice(2);
const server = await startTestServer({ runtimeFolder });
process.stdout.write(`${server.url}\n`);
await once(process, "SIGTERM");
await server.stop();
process.stdout.write(`cycles ${server.view.cycles}\n`);
