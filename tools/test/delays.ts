/**
 * `npm run test:delays [-- PART …]`: the tests of the last commit, or those whose path contains a PART, in a copy of the
 * repository whose programs and tests wait at random (delays.cjs): a test that depends on speed fails here. Takes two to four times as long; `DELAY_SHARE` and `DELAY_MS` set how often and how long it waits.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
// Ctrl-C ends the tests; the copy is removed all the same.
process.once("SIGINT", () => undefined);
const folder = mkdtempSync(join(tmpdir(), "devplat-delays-"));
try {
  const copy = join(folder, "copy");
  execFileSync("git", ["clone", "--quiet", root, copy]);
  execFileSync("cp", ["-R", "-P", join(root, "node_modules"), join(copy, "node_modules")]);
  const options = `--require=${join(copy, "tools/test/delays.cjs")}`;
  // The launchers run this Node. Its own path stays that of the real one: what a test starts by it gets the options from the tests.
  const node = join(copy, relative(root, process.execPath));
  const real = `${node}.real`;
  renameSync(node, real);
  writeFileSync(node, `#!/bin/sh\nNODE_OPTIONS="$NODE_OPTIONS ${options}" exec "${real}" "$@"\n`);
  chmodSync(node, 0o755);
  const { status } = spawnSync(real, [join(copy, "tools/test/test.ts"), ...process.argv.slice(2)], {
    cwd: copy,
    stdio: "inherit",
    env: { ...process.env, TEST_NODE_OPTIONS: options },
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
