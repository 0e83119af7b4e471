import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { CsrfTokens } from "./csrf.ts";

function setClock(): Clock & { time: number } {
  return {
    time: 0,
    now() {
      return this.time;
    },
    monotonic() {
      return this.time;
    },
    sleep: async () => undefined,
  };
}

describe("CsrfTokens", () => {
  it("redeems a token once [agent 24.13]", () => {
    const tokens = new CsrfTokens();
    const token = tokens.issue();
    assert.equal(tokens.redeem(token), true);
    assert.equal(tokens.redeem(token), false);
  });

  it("refuses a missing and an unknown token", () => {
    const tokens = new CsrfTokens();
    assert.equal(tokens.redeem(undefined), false);
    assert.equal(tokens.redeem(""), false);
    assert.equal(tokens.redeem("x".repeat(43)), false);
  });

  it("refuses a token after 10 minutes [agent 24.13]", () => {
    const clock = setClock();
    const tokens = new CsrfTokens(clock);
    const [early, late] = [tokens.issue(), tokens.issue()];
    clock.time = 10 * 60 * 1000 - 1;
    assert.equal(tokens.redeem(early), true);
    clock.time += 1;
    assert.equal(tokens.redeem(late), false);
  });

  it("keeps 1000 tokens and evicts the oldest [agent 24.13]", () => {
    const tokens = new CsrfTokens();
    const issued = Array.from({ length: 1001 }, () => tokens.issue());
    assert.equal(tokens.redeem(issued[0]), false);
    assert.equal(tokens.redeem(issued[1]), true);
    assert.equal(tokens.redeem(issued[1000]), true);
  });
});
