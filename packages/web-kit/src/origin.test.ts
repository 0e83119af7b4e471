import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isLoopbackHost, isOwnOrigin } from "./origin.ts";

describe("isOwnOrigin", () => {
  const own = ["http://127.0.0.1:8200"];
  it("takes the same scheme, host and port", () =>
    assert.equal(isOwnOrigin("http://127.0.0.1:8200", own), true));
  const refused = [
    undefined,
    "",
    "null",
    "http://127.0.0.1",
    "https://127.0.0.1:8200",
    "http://localhost:8200",
  ];
  for (const origin of [...refused, "http://127.0.0.1:8200.evil.test", "http://evil.test"]) {
    it(`refuses ${origin ?? "a missing one"}`, () => assert.equal(isOwnOrigin(origin, own), false));
  }
});

describe("isLoopbackHost", () => {
  for (const host of [
    "localhost",
    "LOCALHOST:8200",
    "127.0.0.1:8200",
    "127.0.0.1",
    "127.1.2.3:1",
    "[::1]:8200",
    "[::1]",
  ]) {
    it(`takes ${host}`, () => assert.equal(isLoopbackHost(host), true));
  }
  const refused = [
    undefined,
    "",
    "evil.test",
    "localhost.evil.test",
    "127.0.0.1.evil.test:8200",
    "[::2]:1",
    "::1",
  ];
  for (const host of [
    ...refused,
    "evil.test#localhost",
    "user@localhost",
    "0.0.0.0:8200",
    "localhost:8200:1",
    "10.0.0.1",
  ]) {
    it(`refuses ${host ?? "a missing one"}`, () => assert.equal(isLoopbackHost(host), false));
  }
});
