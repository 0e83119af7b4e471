import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readResults } from "../../bench/lib/results-index.ts";
import { checkOutcome, readAnswers, rounded } from "../../bench/simulate/answers.ts";
import { readCosts } from "../../bench/simulate/model/read-costs.ts";

/** A value as the file of the answers has it. */
const stored = (value: unknown): unknown => JSON.parse(JSON.stringify(value, rounded));

describe("answers of the model of a fleet", () => {
  const { costs, check } = readAnswers();

  it("were made with the costs of the stored results", () => {
    assert.deepEqual(stored(readCosts(readResults())), costs, "run npm run simulate -- --write");
  });

  it("are those of the present model", () => {
    assert.deepEqual(
      stored(checkOutcome(readCosts(readResults()))),
      check,
      "run npm run simulate -- --write",
    );
  });
});
