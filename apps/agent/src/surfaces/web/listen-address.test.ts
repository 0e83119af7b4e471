import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AgentError } from "../../errors.ts";
import { parseListenAddress } from "./listen-address.ts";

describe("parseListenAddress", () => {
  it("takes the three loopback forms", () => {
    assert.deepEqual(parseListenAddress("127.0.0.1:8200"), {
      address: "127.0.0.1",
      port: 8200,
      urlHost: "127.0.0.1",
    });
    assert.deepEqual(parseListenAddress("[::1]:8200"), { address: "::1", port: 8200, urlHost: "[::1]" });
    assert.deepEqual(parseListenAddress("LocalHost:0"), {
      address: "localhost",
      port: 0,
      urlHost: "localhost",
    });
  });

  for (const text of [
    "0.0.0.0:8200",
    "[::]:8200",
    ":8200",
    "8200",
    "*:8200",
    "192.168.1.4:8200",
    "example.test:8200",
    "localhost.example.test:8200",
    "127.0.0.1",
    "127.0.0.1:99999",
    "127.0.0.1:8200 ",
    "[::ffff:0.0.0.0]:8200",
    "",
  ]) {
    it(`refuses "${text}"`, () => {
      assert.throws(
        () => parseListenAddress(text),
        (error) => error instanceof AgentError && error.code === "listen_refused",
      );
    });
  }
});
