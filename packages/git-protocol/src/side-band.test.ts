import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  FLUSH_PKT,
  PktLineReader,
  SIDE_BAND,
  decodeSideBand,
  encodeErrorLine,
  encodeSideBandError,
  encodeSideBandProgress,
  messageText,
} from "./index.ts";

/** Any text, with many of the characters that a terminal obeys. */
const hostile = fc.string({
  unit: fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.integer({ min: 0, max: 0x9f }).map((code) => String.fromCharCode(code)),
    fc.constantFrom("\u001b[31m", "\u009b2J", "\u202e", "\r", "\n"),
  ),
  maxLength: 200,
});

const payloads = (bytes: Buffer): Buffer[] => {
  const reader = new PktLineReader();
  reader.push(bytes);
  const found: Buffer[] = [];
  for (let next = reader.next(); next.state === "complete"; next = reader.next()) {
    if (next.line.kind === "data") found.push(Buffer.from(next.line.payload));
  }
  return found;
};

test("text for git has no control byte but newline and carriage return", () => {
  const check = (bytes: Buffer): void => {
    assert.doesNotMatch(bytes.toString("utf8"), /(?![\n\r])[\p{Cc}\p{Cf}\u2028\u2029]/u);
    assert.ok(bytes.every((byte) => (byte >= 0x20 && byte !== 0x7f) || byte === 0x0a || byte === 0x0d));
  };
  fc.assert(
    fc.property(hostile, (text) => {
      for (const [encoded, channel] of [
        [encodeSideBandProgress(text), SIDE_BAND.progress],
        [encodeSideBandError(text), SIDE_BAND.error],
      ] as const) {
        for (const packet of payloads(encoded)) {
          const { channel: found, data } = decodeSideBand(packet);
          assert.equal(found, channel);
          check(data);
        }
      }
      for (const packet of payloads(encodeErrorLine(text))) check(packet);
    }),
  );
});

test("text for git without such characters stays as it is", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      fc.pre(!/\p{Cf}/u.test(text));
      assert.equal(messageText(text), text);
    }),
  );
  assert.equal(messageText("a\u001b[31m\u009b\tb\r\n"), "a\\u{1b}[31m\\u{9b}\\u{9}b\r\n");
  assert.deepEqual(encodeSideBandError("x"), Buffer.concat([Buffer.from("0007\u0003x\n"), FLUSH_PKT]));
});
