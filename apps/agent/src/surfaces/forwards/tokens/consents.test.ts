import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import { ForwardError } from "../errors/forward-error.ts";
import { Consents } from "./consents.ts";

const MINUTE_MS = 60_000;
const failsWith = (code: string) => (error: unknown) => error instanceof ForwardError && error.code === code;
const pending = failsWith("consent_pending");
const refused = failsWith("token_not_lendable");

describe("Consents", () => {
  let clock: HandClock;
  let asked: string[];
  let consents: Consents;
  beforeEach(() => {
    clock = new HandClock();
    asked = [];
    consents = new Consents({ ask: (borrower) => void asked.push(borrower), clock });
  });

  it("never asks with ask: never", () => {
    consents.use("dev", "never");
    assert.deepEqual(asked, []);
    assert.equal(consents.decide("dev", true), false);
  });

  it("has one question for a borrower at a time, and repeats it after 10 minutes", () => {
    for (let n = 0; n < 3; n++) assert.throws(() => consents.use("dev", "first"), pending);
    assert.deepEqual(asked, ["dev"]);
    assert.throws(() => consents.use("other", "first"), pending);
    clock.advance(10 * MINUTE_MS);
    assert.throws(() => consents.use("dev", "first"), pending);
    assert.deepEqual(asked, ["dev", "other", "dev"]);
  });

  it("with ask: first, one authorization lasts until the connection ends", () => {
    assert.throws(() => consents.use("dev", "first"), pending);
    assert.equal(consents.decide("dev", true), true);
    consents.use("dev", "first");
    clock.advance(60 * MINUTE_MS);
    consents.use("dev", "first");
    consents.end("dev");
    assert.throws(() => consents.use("dev", "first"), pending);
    assert.equal(asked.length, 2);
  });

  it("with ask: always, one authorization is for one handout within a minute", () => {
    assert.throws(() => consents.use("dev", "always"), pending);
    consents.decide("dev", true);
    consents.use("dev", "always");
    assert.throws(() => consents.use("dev", "always"), pending);
    consents.decide("dev", true);
    clock.advance(MINUTE_MS);
    assert.throws(() => consents.use("dev", "always"), pending);
    assert.equal(asked.length, 3);
  });

  it("an authorization whose handout failed can be used again", () => {
    assert.throws(() => consents.use("dev", "always"), pending);
    consents.decide("dev", true);
    consents.use("dev", "always")();
    consents.use("dev", "always");
    assert.throws(() => consents.use("dev", "always"), pending);
  });

  it("a refusal holds for 10 minutes, also over a new connection", () => {
    assert.throws(() => consents.use("dev", "first"), pending);
    consents.decide("dev", false);
    consents.end("dev");
    clock.advance(10 * MINUTE_MS - 1);
    assert.throws(() => consents.use("dev", "first"), refused);
    assert.throws(() => consents.use("dev", "always"), refused);
    assert.equal(consents.decide("dev", true), false);
    clock.advance(1);
    assert.throws(() => consents.use("dev", "first"), pending);
  });

  it("the end of a connection ends its question; a later decision counts for nothing", () => {
    assert.throws(() => consents.use("dev", "first"), pending);
    consents.end("dev");
    assert.equal(consents.decide("dev", true), false);
    assert.throws(() => consents.use("dev", "first"), pending);
  });

  it("nothing is lent where the user cannot be asked", () => {
    const deaf = new Consents({ ask: undefined, clock });
    deaf.use("dev", "never");
    assert.throws(() => deaf.use("dev", "first"), refused);
  });
});
