import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loopSeconds } from "@devplat/testkit";
import { loadStreams } from "./agent-web/streams.ts";

/** A minute of a quarter of an hour. */
const SHARE = 1 / 15;
/** Growth of the engine itself over time. A stream that is not released costs this in seconds. */
const MAX_GROWTH_BYTES = 2 * 1024 * 1024;

describe("32 open streams", () => {
  it("do not increase the daemon's memory while its state and the pages change [agent 34.7]", async (t) => {
    const { seconds, changes, received, growth } = await loadStreams(loopSeconds(SHARE));
    t.diagnostic(
      `${seconds.toFixed(0)} s, ${changes} changes, ${received} bytes received, grown by ${growth} bytes`,
    );
    assert.ok(changes >= seconds * 5, "the state has changed all the time");
    assert.ok(received > changes * 32 * 1000, "the streams were read");
    assert.ok(growth < MAX_GROWTH_BYTES, `${growth} bytes`);
  });
});
