/** `npm run build`: dist/agent, a release of the daemon. `npm run build -- --executable` makes it a single file too. */
import { resolve } from "node:path";
import { buildAgent } from "./agent.ts";

const folder = resolve(import.meta.dirname, "../../dist/agent");
const { launcher, executable } = await buildAgent(folder, {
  executable: process.argv.includes("--executable"),
});
for (const path of [launcher, executable]) if (path !== undefined) process.stdout.write(`${path}\n`);
