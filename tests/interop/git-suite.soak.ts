import { after, before, describe, it } from "node:test";
import { assertPasses } from "./git-suite/assert-passes.ts";
import { LONG_SCRIPTS, SCRIPTS } from "./git-suite/scripts.ts";
import { GitSuite } from "./git-suite/stand.ts";

describe("all of git's own tests with svc before git http-backend", () => {
  let suite: GitSuite;
  before(async () => {
    suite = await GitSuite.start();
  });
  after(() => suite.stop());

  for (const script of [...SCRIPTS, ...LONG_SCRIPTS]) {
    it(`${script.name} passes`, (t) => assertPasses(suite, script, t));
  }
});
