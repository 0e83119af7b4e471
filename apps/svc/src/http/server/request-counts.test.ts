import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, it } from "node:test";
import { systemClock } from "@devplat/base";
import { ProbeLimit } from "../../access/probe-limit.ts";
import { MAX_UPLOADS_PER_CLIENT, UploadLimit } from "../../git/upload-limit.ts";
import type { RequestContext } from "../request/request-context.ts";
import { RequestCounts } from "./request-counts.ts";

describe("bounds of one client", () => {
  const [one, sameNetwork, other] = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"];

  it("concurrent requests: an IPv6 network of 64 bits is one client [svc 11.10]", () => {
    const counts = new RequestCounts(1);
    const context = (remoteAddress: string): RequestContext =>
      ({ remoteAddress, response: new EventEmitter() }) as unknown as RequestContext;
    const first = context(one);
    assert.equal(counts.begin(first), true);
    assert.equal(counts.begin(context(sameNetwork)), false);
    assert.equal(counts.begin(context(other)), true);
    first.response.emit("close");
    assert.equal(counts.begin(context(sameNetwork)), true);
  });

  it("bodies on their way: the same", () => {
    const limit = new UploadLimit();
    for (let count = 0; count < MAX_UPLOADS_PER_CLIENT; count++) limit.begin(one);
    assert.throws(() => limit.begin(sameNetwork), /this address/);
    limit.begin(other);
  });

  it("questions that a fetch sets off: the same", () => {
    const limit = new ProbeLimit(1, { ...systemClock, monotonic: () => 0 });
    assert.deepEqual(
      [one, sameNetwork, other].map((address) => limit.take(address)),
      [true, false, true],
    );
  });
});
