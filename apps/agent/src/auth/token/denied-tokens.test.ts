import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { HandClock } from "../../sync/clock.test-kit.ts";
import { DeniedTokens, tokenDigest } from "./denied-tokens.ts";

const MINUTE_MS = 60_000;
const token = (n: number): Secret => new Secret(`token-${n}`);

describe("DeniedTokens", () => {
  it("remembers a refused token for 15 minutes [agent 10.21]", () => {
    const clock = new HandClock();
    const subject = new DeniedTokens(clock);
    subject.add(token(1));
    assert.deepEqual([subject.has(token(1)), subject.has(token(2))], [true, false]);
    clock.advance(15 * MINUTE_MS - 1);
    assert.equal(subject.has(token(1)), true);
    clock.jump(60 * MINUTE_MS);
    assert.equal(subject.has(token(1)), true, "a wall clock that was set does not count");
    clock.advance(1);
    assert.equal(subject.has(token(1)), false);
  });

  it("remembers 16 of them, and forgets the one that was refused longest ago [agent 10.22]", () => {
    const subject = new DeniedTokens(new HandClock());
    for (let n = 1; n <= 16; n++) subject.add(token(n));
    subject.add(token(1));
    subject.add(token(17));
    assert.deepEqual(
      [1, 2, 3, 17].map((n) => subject.has(token(n))),
      [true, false, true, true],
    );
  });

  it("keeps a SHA-256 of a token, not the token [agent 10.22]", () => {
    assert.match(tokenDigest(token(1)), /^[A-Za-z0-9_-]{43}$/);
    assert.notEqual(tokenDigest(token(1)), tokenDigest(token(2)));
  });
});
