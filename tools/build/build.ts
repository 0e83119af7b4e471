/** `npm run build`: dist/agent and dist/svc, releases of both programs. `npm run build -- --executable` makes the daemon a single file too. */
import { resolve } from "node:path";
import { buildAgent } from "./agent.ts";
import { buildSvc } from "./svc.ts";

const dist = resolve(import.meta.dirname, "../../dist");
const { launcher, executable } = await buildAgent(resolve(dist, "agent"), {
  executable: process.argv.includes("--executable"),
});
const service = await buildSvc(resolve(dist, "svc"));
for (const path of [launcher, executable, service]) if (path !== undefined) process.stdout.write(`${path}\n`);
