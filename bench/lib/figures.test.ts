import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { figure, quantity, runsText } from "./figures.ts";
import { exactly, summarize } from "./statistics.ts";

describe("figures of results", () => {
  it("a value has three digits and a unit of its size", () => {
    assert.equal(quantity(0.005768, "s"), "5.77 ms");
    assert.equal(quantity(9.704, "s"), "9.7 s");
    assert.equal(quantity(0, "s"), "0 s");
    assert.equal(quantity(311.24, "MB"), "311 MB");
    assert.equal(quantity(1, ""), "1");
    assert.equal(quantity(2376.4, "1/s"), "2376/s");
  });

  it("a figure has a range only if runs differ", () => {
    assert.equal(figure(summarize([0.741, 1.13]), "s"), "936 ms (741–1130)");
    assert.equal(figure(summarize([1.1, 1.3]), "s"), "1.2 s (1.1–1.3)");
    assert.equal(figure(exactly(300), "MB"), "300 MB");
    assert.equal(figure(summarize([0.05, 0.05, 0.05]), "s"), "50 ms");
  });

  it("runs are told for both sides unless the reference has one value", () => {
    assert.equal(runsText(summarize([1, 2]), summarize([1, 2])), "2");
    assert.equal(runsText(summarize([1, 2, 3]), summarize([1, 2])), "3, 2");
    assert.equal(runsText(summarize([1, 2, 3]), exactly(15)), "3");
  });
});
