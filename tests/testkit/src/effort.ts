import { TestkitError } from "./errors.ts";

/** Seconds for the loops of all tests together, when TEST_BUDGET_SECONDS is not set: five minutes. */
const DEFAULT_BUDGET_SECONDS = 300;
/** fast-check takes a signed 32-bit seed. */
const SEED_LIMIT = 2 ** 31;

/** The seconds that a loop may use which takes this share (0..1) of the budget of all tests. */
export function loopSeconds(share: number): number {
  if (!(share >= 0 && share <= 1)) throw new RangeError(`a share lies between 0 and 1: ${share}`);
  return share * nonNegative("TEST_BUDGET_SECONDS", DEFAULT_BUDGET_SECONDS);
}

/** The seed of this process's random tests: TEST_SEED, or a random one. The first call prints it. */
export function testSeed(): number {
  if (chosen === undefined) {
    chosen = Math.trunc(nonNegative("TEST_SEED", Math.floor(Math.random() * SEED_LIMIT))) % SEED_LIMIT;
    process.stderr.write(`seed ${chosen} (TEST_SEED=${chosen} repeats this run)\n`);
  }
  return chosen;
}

let chosen: number | undefined;

function nonNegative(name: string, otherwise: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return otherwise;
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) {
    throw new TestkitError("bad_setting", `${name}: expected a number of at least 0`);
  }
  return value;
}
