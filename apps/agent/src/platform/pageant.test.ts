import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { pageantPipeName } from "./pageant.ts";

describe("pageantPipeName", () => {
  it("hashes the length and one protected block, which begins with the word", () => {
    let seen = Buffer.alloc(0);
    const name = pageantPipeName("ada", (bytes) => {
      seen = Buffer.from(bytes);
      for (const [i, byte] of bytes.entries()) bytes[i] = byte ^ 0xa5;
    });
    assert.equal(seen.toString("latin1"), `Pageant${"\0".repeat(9)}`);
    const protectedWord = Buffer.from(seen.map((byte) => byte ^ 0xa5));
    const hash = createHash("sha256")
      .update(Buffer.concat([Buffer.from([0, 0, 0, 16]), protectedWord]))
      .digest("hex");
    assert.equal(name, `\\\\.\\pipe\\pageant.ada.${hash}`);
  });

  it("is the known one where Windows cannot protect memory", () => {
    // printf '\0\0\0\20Pageant\0\0\0\0\0\0\0\0\0' | sha256sum
    assert.equal(
      pageantPipeName("u", () => undefined),
      "\\\\.\\pipe\\pageant.u.2e9e7389b30cd8240bf15518e9a228d6537dc38d64b2070a189ca2fe5452d492",
    );
  });
});
