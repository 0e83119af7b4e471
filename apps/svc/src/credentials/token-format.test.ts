import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import fc from "fast-check";
import { claimedKind, createToken, holdsTokenPrefix, isWellFormed, tokenStart } from "./token-format.ts";

describe("token format", () => {
  it("a token has prefix, 43 characters and a checksum that holds [svc 9.1]", () => {
    for (const kind of ["session", "proxy", "agent"] as const) {
      const text = createToken(kind).reveal();
      assert.match(text, /^svc[rxa]_[0-9A-Za-z]{49}$/);
      assert.equal(claimedKind(text), kind);
      assert.equal(isWellFormed(text), true);
    }
    assert.equal(tokenStart(new Secret("svcx_abcdefghijkl")), "svcx_abcdefg");
  });

  it("a token with any one character changed is not well-formed", () => {
    const text = createToken("proxy").reveal();
    fc.assert(
      fc.property(fc.nat(text.length - 1), fc.constantFrom("0", "a", "Z", "_", "é"), (at, other) => {
        fc.pre(text[at] !== other);
        assert.equal(isWellFormed(text.slice(0, at) + other + text.slice(at + 1)), false);
      }),
    );
  });

  it("a prefix is noticed anywhere in a text", () => {
    assert.equal(holdsTokenPrefix("x=svcx_"), true);
    assert.equal(holdsTokenPrefix("svc_x svcz_"), false);
  });
});
