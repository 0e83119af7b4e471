// Serves the daemon's web UI over a state in memory until SIGTERM, for tests that need it as a process of another user.
// Arguments: runtime folder, web.listen (optional). Prints the URL, and when it ends the number of cycles asked for and the warnings.
import { once } from "node:events";
import { startTestServer } from "../../../apps/agent/src/surfaces/web/server.test-kit.ts";

const [runtimeFolder = "", listen] = process.argv.slice(2);
const server = await startTestServer({ runtimeFolder, ...(listen === undefined ? {} : { listen }) });
// Listened for before anybody can know that the server runs.
const stopped = once(process, "SIGTERM");
process.stdout.write(`${server.url}\n`);
await stopped;
await server.stop();
process.stdout.write(`cycles ${server.view.cycles}\n`);
for (const warning of server.warnings) process.stdout.write(`warning: ${warning}\n`);
