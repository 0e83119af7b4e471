import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { RECORDED_GIT, type Script } from "./scripts.ts";
import type { GitSuite } from "./stand.ts";

/** Share of the recorded passes that another version of git must reach, so that a script that does not run is noticed. */
const OTHER_VERSION_SHARE = 0.8;

/**
 * Runs a script of git's tests. Each test must pass, except those that the table says cannot. With another version of git than the
 * recorded one, tests that fail can be new, and are only printed.
 */
export async function assertPasses(suite: GitSuite, script: Script, t: TestContext): Promise<void> {
  const { tests, requests, output } = await suite.run(script.name);
  const cannot = script.cannot.flatMap((each) => each.tests);
  for (const title of cannot) {
    const isThere = [...tests.keys()].some((each) => each.startsWith(title));
    if (suite.version === RECORDED_GIT) assert.ok(isThere, `no test of ${script.name} begins so: ${title}`);
  }
  const counted = [...tests].filter(([title]) => !cannot.some((each) => title.startsWith(each)));
  const titles = (wanted: string): string[] =>
    counted.filter(([, verdict]) => verdict === wanted).map(([title]) => title);
  const failed = titles("failed");
  const passed = titles("passed").length;
  t.diagnostic(`${passed} passed, ${requests} requests to svc`);
  assert.ok(requests > 0, output);
  if (suite.version === RECORDED_GIT) {
    assert.deepEqual(failed, [], output);
    assert.ok(passed >= script.passes, `${passed} passed: ${output}`);
  } else {
    if (failed.length > 0) t.diagnostic(`with git ${suite.version}: ${failed.join(", ")}`);
    assert.ok(passed >= script.passes * OTHER_VERSION_SHARE, `${passed} passed: ${output}`);
  }
}
