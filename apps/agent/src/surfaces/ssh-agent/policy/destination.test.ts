import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isDestination, literalNames, type Account } from "./destination.ts";

const ANY: Account = { kind: "any" };
const EVERY: Account = { kind: "every" };
const named = (user: string): Account => ({ kind: "named", user });
const textOf = (account: Account): string =>
  account.kind === "named" ? `user "${account.user}"` : `${account.kind} user`;

describe("isDestination", () => {
  const hosts: [names: string[], patterns: string[], expected: boolean][] = [
    [["web"], ["web"], true],
    [["WEB"], ["web"], true],
    [["web.example.com"], ["*.example.com"], true],
    [["[web]:2222"], ["web"], false],
    [["[web]:2222"], ["[web]:2222"], true],
    [[], ["*"], false],
    [["web"], [], false],
    [["web", "db"], ["web", "!db"], false],
    [["web"], ["!db"], false],
  ];
  for (const [names, patterns, expected] of hosts) {
    it(`${names.join()} is among ${patterns.join()}: ${expected}`, () => {
      for (const account of [ANY, EVERY, named("alice")]) {
        assert.equal(isDestination(names, account, patterns), expected);
      }
    });
  }

  const accounts: [account: Account, patterns: string[], expected: boolean][] = [
    [named("alice"), ["alice@web"], true],
    [named("bob"), ["alice@web"], false],
    [named("Alice"), ["alice@web"], false],
    [named("alice"), ["alice@db"], false],
    [named("alice"), ["bob@web", "alice@db"], false],
    [named("deploy-2"), ["deploy-?@WEB"], true],
    [named("bob"), ["*@web"], true],
    [named(""), ["*@web"], true],
    [named(""), ["?@web"], false],
    [named("alice@corp"), ["alice@corp@web"], true],
    [named("alice"), ["alice@corp@web"], false],
    [named("bob"), ["alice@web", "w*"], true],
    [named("root"), ["*", "!root@web"], false],
    [named("alice"), ["*", "!root@web"], true],
    [named("root"), ["*", "!root@db"], true],
    [ANY, ["alice@web"], true],
    [ANY, ["alice@db"], false],
    [ANY, ["*", "!root@web"], true],
    [EVERY, ["alice@web"], false],
    [EVERY, ["*@web"], false],
    [EVERY, ["*", "!root@web"], false],
    [EVERY, ["*", "!root@db"], true],
  ];
  for (const [account, patterns, expected] of accounts) {
    it(`${textOf(account)} of web is among ${patterns.join()}: ${expected}`, () =>
      assert.equal(isDestination(["web"], account, patterns), expected));
  }
});

describe("literalNames", () => {
  it("candidates are the patterns that spell a host name out", () => {
    const patterns = ["Web", "*.example.com", "!db", "a?", "al*@mail", "bob@*", "!bob@news"];
    assert.deepEqual(literalNames(patterns), ["web", "mail"]);
  });
});
