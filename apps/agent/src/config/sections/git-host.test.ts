import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { run, gitEnvironment } from "@devplat/testkit";
import { GIT_HOST_PATTERN, coversGitHost } from "./git-host.ts";

describe("the host of git_credentials", () => {
  const covered: [string, string, string][] = [
    ["git.example", "https", "git.example"],
    ["git.example", "https", "GIT.Example"],
    ["git.example", "https", "git.example:443"],
    ["git.example:443", "https", "git.example"],
    ["git.example:8443", "https", "git.example:8443"],
    ["*.corp.example", "https", "a.corp.example"],
    ["*.corp.example:8443", "https", "a.corp.example:8443"],
    ["git.*.example", "https", "git.eu.example"],
    ["localhost", "http", "localhost:80"],
    ["localhost:3000", "http", "localhost:3000"],
    ["127.0.0.1:3000", "http", "127.0.0.1:3000"],
  ];
  const refused: [string, string, string][] = [
    ["git.example", "https", "git.example:8443"],
    ["git.example", "https", "git.example:80"],
    ["git.example:8443", "https", "git.example"],
    ["git.example:8443", "https", "git.example:443"],
    ["*.corp.example", "https", "a.corp.example:8443"],
    ["*.corp.example", "https", "corp.example"],
    ["*.corp.example", "https", "a.b.corp.example"],
    ["*.corp.example", "https", "evilcorp.example"],
    ["*.corp.example", "https", "a.corp.example.evil.com"],
    ["git.example", "https", "git.example.evil.com"],
    ["git.example", "https", "a.git.example"],
    ["git.example", "ssh", "git.example"],
    ["git.example", "ftp", "git.example"],
  ];
  // Git itself refuses these, or gives them another form before a helper sees them.
  const hostile: [string, string, string][] = [
    ["*.corp.example", "https", "evil.com/.corp.example"],
    ["*.corp.example", "https", "evil.com\\.corp.example"],
    ["*.corp.example", "https", "evil.com?.corp.example"],
    ["*.corp.example", "https", "evil.com#.corp.example"],
    ["*.corp.example", "https", "evil.com%2f.corp.example"],
    ["*.corp.example", "https", "evil.com@a.corp.example"],
    ["*.corp.example", "https", "a@evil.com:.corp.example"],
    ["*.corp.example", "https", "evil.com:1/.corp.example"],
    ["*.corp.example", "https", ".corp.example"],
    ["*.corp.example", "https", "a..corp.example"],
    ["*.corp.example", "https", "*.corp.example"],
    ["*.corp.example", "https", "a.corp.example."],
    ["*.corp.example", "https", "a.corp.example\n"],
    ["*.corp.example", "https", "evil.com\r.corp.example"],
    ["*.corp.example", "https", "evil.com\0.corp.example"],
    ["*.corp.example", "https", "evil com.corp.example"],
    ["*.corp.example", "https", "éa.corp.example"],
    ["kit.example", "https", "\u212ait.example"],
    ["git.example", "https", "git\u3002example"],
    ["git.example", "https", ""],
    ["git.example", "", "git.example"],
    ["git.example", "https\r", "git.example"],
    ["git.example", "HTTPS", "git.example"],
    ["git.example", "toString", "git.example"],
    ["git.example", "https", "git.example:"],
    ["git.example", "https", "git.example:0"],
    ["git.example:1", "https", "git.example:65537"],
    ["git.example", "https", "git.example:0443"],
    ["git.example", "https", "git.example:443:443"],
    ["git.example", "https", "git.example:+443"],
    ["*", "https", "[::1]"],
    ["git.example", "http", "git.example"],
    ["git.example", "http", "git.example:443"],
    ["localhost.evil.com", "http", "localhost.evil.com"],
  ];

  for (const [pattern, protocol, host] of covered) {
    it(`${pattern} covers ${protocol}://${host}`, () => assert.ok(coversGitHost(pattern, protocol, host)));
  }
  it("[::1] covers itself only", () => {
    assert.ok(coversGitHost("[::1]:3000", "http", "[::1]:3000"));
    assert.ok(!coversGitHost("[::1]", "https", "[::2]"));
  });
  for (const [pattern, protocol, host] of [...refused, ...hostile]) {
    const shown = `${JSON.stringify(protocol)} ${JSON.stringify(host)}`;
    it(`${pattern} does not cover ${shown} [agent 4.20]`, () =>
      assert.ok(!coversGitHost(pattern, protocol, host)));
  }

  it("is compared as git compares credential.URL [agent 4.20]", async () => {
    const answers = async (pattern: string, protocol: string, host: string): Promise<boolean> => {
      const helper = `credential.${protocol}://${pattern}.helper=!printf 'username=u\npassword=p\n' #`;
      const { stdout } = await run("git", ["-c", helper, "credential", "fill"], {
        env: { ...gitEnvironment(), GIT_TERMINAL_PROMPT: "0", GIT_ASKPASS: "false" },
        input: `protocol=${protocol}\nhost=${host}\n\n`,
      });
      return stdout.includes("password=p");
    };
    for (const [pattern, protocol, host] of covered) {
      assert.equal(await answers(pattern, protocol, host), true, `${pattern} ${protocol}://${host}`);
    }
    for (const [pattern, protocol, host] of refused) {
      if (protocol !== "https") continue;
      assert.equal(await answers(pattern, protocol, host), false, `${pattern} ${protocol}://${host}`);
    }
  });

  it("takes * for whole labels only, and a port from 1 to 65535", () => {
    for (const good of ["a", "*", "*.a", "a.*.b:1", "a:65535", "[fe80::1]:8443", "a_b.c-d"]) {
      assert.match(good, GIT_HOST_PATTERN);
    }
    for (const bad of [
      "",
      "a*",
      "*a.b",
      "a..b",
      ".a",
      "a.",
      "a/b",
      "a:0",
      "a:65536",
      "a:",
      "u@a",
      "https://a",
      "::1",
      "a b",
    ]) {
      assert.doesNotMatch(bad, GIT_HOST_PATTERN);
    }
  });
});
