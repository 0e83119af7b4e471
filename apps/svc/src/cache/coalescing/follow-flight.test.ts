import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AnswerCheck } from "../responses/answer-check.ts";
import { Flight } from "./flight.ts";
import { follow } from "./follow-flight.ts";
import { Slices } from "../responses/slices.ts";

describe("follow", () => {
  const newFlight = (): Flight => new Flight(new AnswerCheck("sha1"), new Slices());

  it("a caller that leaves while it is not known whether the answer may be shared is let go", async () => {
    const flight = newFlight();
    const gone = new AbortController();
    const following = follow(flight, gone.signal);
    gone.abort();
    assert.equal(await following, undefined);
    assert.equal(flight.signal.aborted, true, "nobody is left");
  });

  it("a caller that had left before does not wait", async () => {
    const flight = newFlight();
    assert.equal(await follow(flight, AbortSignal.abort()), undefined);
    assert.equal(flight.signal.aborted, true, "nobody is left");
  });
});
