import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { newerGitFolder } from "@devplat/testkit";
import { assertPasses } from "./git-suite/assert-passes.ts";
import { LEFT_OUT, LONG_SCRIPTS, RECORDED_GIT, SCRIPTS } from "./git-suite/scripts.ts";
import { GitSuite } from "./git-suite/stand.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 1_200_000;

describe("git's own tests with svc before git http-backend", { timeout: TIMEOUT_MS, concurrency: 2 }, () => {
  let suite: GitSuite;
  before(async () => {
    suite = await GitSuite.start();
  });
  after(() => suite.stop());

  for (const script of SCRIPTS) it(`${script.name} passes`, (t) => assertPasses(suite, script, t));

  it("every script that starts a web server is in a table", async () => {
    if (suite.version !== RECORDED_GIT) return;
    const tabled = new Set([
      ...[...SCRIPTS, ...LONG_SCRIPTS].map(({ name }) => name),
      ...Object.keys(LEFT_OUT),
    ]);
    const folder = join(newerGitFolder(), "t");
    for (const name of await readdir(folder)) {
      if (!/^t(?:[0-5]).*\.sh$/.test(name) || tabled.has(name)) continue;
      assert.doesNotMatch(await readFile(join(folder, name), "utf8"), /lib-httpd\.sh/, name);
    }
  });
});
