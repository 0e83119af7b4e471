import assert from "node:assert/strict";
import { inspect } from "node:util";
import fc from "fast-check";
import { SshProtocolError, type SshErrorCode } from "../src/index.ts";

export function assertThrowsCode(action: () => unknown, code: SshErrorCode, message = ""): void {
  assert.throws(
    action,
    (error: unknown) => {
      assert.ok(error instanceof SshProtocolError, String(error));
      assert.equal(error.code, code, message);
      return true;
    },
    `nothing was thrown: ${message}`,
  );
}

/** Asserts that a decoder ends with a value or the package's own error for damaged copies of valid input. */
export function assertSurvivesDamage(
  sound: Uint8Array,
  decode: (bytes: Buffer) => unknown,
  runs = 300,
): void {
  const change = fc.record({
    at: fc.nat(),
    kind: fc.constantFrom("set", "cut", "insert", "drop"),
    byte: fc.nat(255),
  });
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
      let bytes = Buffer.from(sound);
      for (const { at, kind, byte } of changes) {
        const place = at % (bytes.length + 1);
        const [before, after] = [bytes.subarray(0, place), bytes.subarray(place)];
        if (kind === "cut") bytes = before;
        else if (kind === "insert") bytes = Buffer.concat([before, Buffer.of(byte), after]);
        else
          bytes = Buffer.concat([
            before,
            kind === "set" ? Buffer.of(byte) : Buffer.alloc(0),
            after.subarray(1),
          ]);
      }
      assertOwnError(() => decode(bytes));
    }),
    { numRuns: runs },
  );
}

/** Asserts that an action returns, or throws the package's own error. */
export function assertOwnError(action: () => unknown): void {
  try {
    action();
  } catch (error) {
    assert.ok(error instanceof SshProtocolError, inspect(error));
  }
}
