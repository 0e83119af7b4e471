import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import { addressKey } from "@devplat/config/address-key";
import { LoginLimits } from "./login-limits.ts";
import { returnPath } from "./return-to.ts";

describe("return_to", () => {
  it("leads to pages of this service", () => {
    for (const path of [
      "/ui",
      "/ui?a=b",
      "/admin",
      "/admin/tokens?done=x",
      "/auth/device?user_code=ABCD-EFGH",
    ]) {
      assert.equal(returnPath(path), path);
    }
  });

  const foreign: [name: string, path: string | undefined | null][] = [
    ["nothing", undefined],
    ["null", null],
    ["empty", ""],
    ["an absolute address", "https://evil.example/ui"],
    ["an address without scheme", "//evil.example/ui"],
    ["a backslash", "/\\evil.example"],
    ["backslashes", "\\\\evil.example"],
    ["a backslash inside", "/ui\\..\\..\\evil"],
    ["a tab before the second slash", "/\t/evil.example"],
    ["a line break", "/ui\r\nLocation: https://evil.example"],
    ["a script", "javascript:alert(1)"],
    ["a relative path", "ui"],
    ["a path that climbs out", "/ui/../../../evil"],
    ["a word that only begins so", "/uixevil"],
    ["the callback itself", "/auth/callback?code=x"],
    ["the way out", "/auth/logout"],
    ["the API", "/api/tokens"],
    ["not ASCII", "/ui\u2028"],
    ["very long", `/ui?${"x".repeat(600)}`],
    ["a user name", "/@evil.example/ui"],
    ["two slashes after a dot", "/.//evil.example"],
  ];
  for (const [name, path] of foreign) {
    it(`does not lead elsewhere: ${name}`, () => assert.equal(returnPath(path), "/ui"));
  }
});

describe("limits on tries", () => {
  let now = 0;
  const clock: Clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };
  const [one, sameNetwork, other] = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"];

  it("an address may begin 60 logins in a minute", () => {
    const limits = new LoginLimits(clock);
    for (let count = 0; count < 60; count++) limits.login(one);
    limits.login(other);
    const refusal = { code: "too_many_requests", hint: "Try again in 1 s." };
    assert.throws(() => limits.login(sameNetwork), refusal);
    now += 1000;
    limits.login(one);
    assert.throws(() => limits.login(one), refusal);
  });

  it("a user, and an address, may try 10 user codes in ten minutes", () => {
    const refusal = { code: "too_many_requests", hint: "Try again in 60 s." };
    const byUser = new LoginLimits(clock);
    for (let count = 0; count < 10; count++) byUser.userCode("ada", `192.0.2.${count}`);
    assert.throws(() => byUser.userCode("ada", "198.51.100.1"), refusal);
    byUser.userCode("bob", "198.51.100.1");
    const byAddress = new LoginLimits(clock);
    for (let count = 0; count < 10; count++) byAddress.userCode(`user-${count}`, one);
    assert.throws(() => byAddress.userCode("ada", sameNetwork), refusal);
    now += 60_000;
    byAddress.userCode("ada", one);
  });

  it("an IPv6 network of 64 bits is one caller, an IPv4 address is one", () => {
    const same = addressKey("2001:db8:0:1::1");
    for (const address of ["2001:db8:0:1:ffff::9", "2001:DB8::1:a:b:c:d", "2001:db8:0:1::%eth0"]) {
      assert.equal(addressKey(address), same, address);
    }
    assert.notEqual(addressKey("2001:db8:0:2::1"), same);
    assert.equal(addressKey("::1"), "0:0:0:0::/64");
    assert.equal(addressKey("192.0.2.1"), "192.0.2.1");
  });
});
