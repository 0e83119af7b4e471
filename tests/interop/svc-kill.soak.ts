import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loopSeconds } from "@devplat/testkit";
import { killLoop } from "./svc-kill-loop.ts";

const SHARE = 0.5;

describe("two processes over one cache folder, for long", () => {
  it("at least 200 times kill -9 at random moments of clones", async () => {
    const result = await killLoop({ minKills: 200, seconds: loopSeconds(SHARE) });
    process.stderr.write(`${JSON.stringify(result)}\n`);
    assert.ok(result.kills >= 200 && result.brokenOff > 0);
  });
});
