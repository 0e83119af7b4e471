// A web server whose state changes all the time, for measuring what its open streams cost. Needs --expose-gc. Prints
// its URL; for each line on standard input it collects garbage and prints what is left, as JSON. Ends with its input.
import { createInterface } from "node:readline";
import { startTestServer } from "../../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { ruleView, signedIn } from "../../../apps/agent/src/surfaces/web/memory-view.test-kit.ts";

/** More than the server puts into one push, in milliseconds. */
const CHANGE_MS = 60;
const RULES = 50;

const server = await startTestServer();
let changes = 0;
const timer = setInterval(() => {
  changes += 1;
  const state = changes % 2 === 0 ? ("ok" as const) : ("failed" as const);
  const last_cycle_at = new Date(Date.parse("2026-11-21T09:00:00.000Z") + changes * 1000).toISOString();
  server.view.set({
    rules: Array.from({ length: RULES }, (_, at) => ruleView(`rule-${at}`, { state })),
    status: { sync: { ...signedIn.sync, last_cycle_at } },
  });
}, CHANGE_MS);
process.stdout.write(`${server.url}\n`);
for await (const question of createInterface(process.stdin)) {
  if (question === "") continue;
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  process.stdout.write(`${JSON.stringify({ bytes: heapUsed + external, changes })}\n`);
}
clearInterval(timer);
await server.stop();
