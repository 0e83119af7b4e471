import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ResponseCheck } from "../responses/response-check.ts";
import { CoalescedFetch } from "./coalesced-fetch.ts";
import { joinWhenShared } from "./sharing.ts";

describe("joinWhenShared", () => {
  const newFetch = (): CoalescedFetch => new CoalescedFetch(new ResponseCheck("sha1"));

  it("a caller that leaves before the sharing of a response is decided is released", async () => {
    const fetch = newFetch();
    const gone = new AbortController();
    const following = joinWhenShared(fetch, gone.signal);
    gone.abort();
    assert.equal(await following, undefined);
    assert.equal(fetch.signal.aborted, true, "nobody is left");
  });

  it("a caller that had left before does not wait", async () => {
    const fetch = newFetch();
    assert.equal(await joinWhenShared(fetch, AbortSignal.abort()), undefined);
    assert.equal(fetch.signal.aborted, true, "nobody is left");
  });
});
