/** `npm run test:release`: what people install, tried in machines with systemd (`*.release.ts`). Needs root on Linux. */
import { resolve } from "node:path";
import { testFiles } from "./files.ts";
import { runGroup } from "./group.ts";

const root = resolve(import.meta.dirname, "../..");
/**
 * One file builds packages, boots a machine, and installs and upgrades programs in it. The first one of all may build the Debian tree. One
 * builds two whole releases.
 */
const FILE_LIMIT_MS = 45 * 60 * 1000;
const files = testFiles(root, ".release.ts", process.argv.slice(2));
const result = await runGroup(
  root,
  { name: "release", files, isolated: true },
  // One at a time: each machine is a whole system, with time limits of its own.
  { concurrency: 1, limitMs: files.length * FILE_LIMIT_MS, testLimitMs: FILE_LIMIT_MS },
);
if (result.broken !== undefined) process.stdout.write(`BROKEN release: ${result.broken}\n`);
const failed = result.failed + (result.broken === undefined ? 0 : 1);
process.stdout.write(`${result.passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
