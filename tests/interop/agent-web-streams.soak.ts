import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loopSeconds } from "@devplat/testkit";
import { loadStreams } from "./agent-web/streams.ts";

const HOUR_SECONDS = 3600;
/** Same limit as for a minute: a leak grows with time, and the memory that the engine keeps does not. */
const MAX_GROWTH_BYTES = 2 * 1024 * 1024;

describe("32 open streams, for an hour or TEST_BUDGET_SECONDS", () => {
  it("do not increase the daemon's memory while its state and the pages change", async (t) => {
    const bounded = (process.env["TEST_BUDGET_SECONDS"] ?? "") !== "";
    const load = await loadStreams(bounded ? loopSeconds(1) : HOUR_SECONDS);
    t.diagnostic(JSON.stringify(load));
    assert.ok(load.growth < MAX_GROWTH_BYTES, `${load.growth} bytes`);
  });
});
