import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  FLUSH_PKT,
  SIDE_BAND,
  encodeErrorLine,
  encodeFetchResponse,
  encodeSideBand,
} from "@devplat/git-protocol";
import { ResponseCheck } from "./response-check.ts";
import { answerOf } from "./response.test-kit.ts";

describe("ResponseCheck", () => {
  const verdictOf = (bytes: Buffer, step: number): string | undefined => {
    const check = new ResponseCheck("sha1");
    for (let at = 0; at < bytes.length; at += step) check.push(bytes.subarray(at, at + step));
    return check.verdict();
  };

  it("takes a whole response, however it is cut", () => {
    for (const step of [1, 7, 19, 20, 21, 1000, 1_000_000])
      assert.equal(verdictOf(answerOf(5000), step), undefined);
  });

  it("refuses every single flipped byte and every truncation [svc 2.4]", () => {
    const whole = answerOf(60);
    for (let at = 0; at < whole.length; at++) {
      const flipped = Buffer.from(whole);
      flipped[at] = (flipped[at] ?? 0) ^ 0x40;
      assert.notEqual(verdictOf(flipped, 1000), undefined, `byte ${at}`);
      assert.notEqual(verdictOf(whole.subarray(0, at), 1000), undefined, `cut at ${at}`);
    }
  });

  it("refuses responses without a packfile, with an error, or with bytes after the end", () => {
    const whole = answerOf(10);
    for (const bytes of [
      encodeFetchResponse([{ name: "acknowledgments", lines: ["NAK"] }]),
      encodeErrorLine("no"),
      Buffer.concat([whole, FLUSH_PKT]),
      Buffer.concat([whole.subarray(0, -4), encodeSideBand(SIDE_BAND.error, Buffer.from("late")), FLUSH_PKT]),
    ]) {
      assert.notEqual(verdictOf(bytes, 1000), undefined);
    }
  });
});
