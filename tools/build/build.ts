/** `npm run build`: dist/agent and dist/svc, releases of both programs that need a Node 26. `npm run build -- --executable` makes each a single file, too. */
import { resolve } from "node:path";
import agent from "../../apps/agent/package.json" with { type: "json" };
import svc from "../../apps/svc/package.json" with { type: "json" };
import { buildAgent } from "./agent.ts";
import { buildProgram } from "./single/program.ts";
import { buildSvc } from "./svc.ts";

const dist = resolve(import.meta.dirname, "../../dist");
const folders = { agent: resolve(dist, "agent"), svc: resolve(dist, "svc") };
const built = [await buildAgent(folders.agent), await buildSvc(folders.svc)];
if (process.argv.includes("--executable")) {
  const single = resolve(dist, "single");
  built.push(
    await buildProgram("agent", single, agent.version),
    await buildProgram("svc", single, svc.version),
  );
}
for (const path of built) process.stdout.write(`${path}\n`);
