import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loopSeconds } from "@devplat/testkit";
import { killLoop } from "./svc-kill-loop.ts";

const SHARE = 0.02;

describe("two processes over one cache folder", { timeout: 480_000 }, () => {
  it("kill -9 of one during clones: no clone is wrong, and the other serves on [svc 3.2]", async () => {
    const { kills, right } = await killLoop({ minKills: 4, seconds: loopSeconds(SHARE) });
    assert.ok(kills >= 4 && right > kills, `${right} clones were right after ${kills} kills`);
  });
});
