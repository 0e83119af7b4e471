import assert from "node:assert/strict";
import { it } from "node:test";
import { testSeed } from "@devplat/testkit";
import { killPushes } from "../../test/push-kill.test-kit.ts";

const KILLS = 200;

it(`a repository survives ${KILLS} kills of the server during pushes`, async () => {
  const { acknowledged, lost } = await killPushes(testSeed(), ({ kills }) => kills >= KILLS);
  process.stderr.write(`${acknowledged} pushes acknowledged, ${lost} not\n`);
  assert.ok(acknowledged > 0 && lost > 0, `${acknowledged} acknowledged, ${lost} not`);
});
