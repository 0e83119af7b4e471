import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { MAX_URL_BYTES, parseWebUrl } from "./web-url.ts";

describe("parseWebUrl", () => {
  for (const url of [
    "https://example.com",
    "http://example.com/",
    "HTTPS://Example.com/A?b=c&d=%20#e",
    "https://example.com:8443/a(b)'c;d",
    "http://127.0.0.1:8200/ui/",
    "http://[::1]:1/",
    "https://example.com/?next=//user:pw@evil.test/",
    "https://example.com/@name",
  ]) {
    it(`takes ${url} as it is`, () => assert.deepEqual(parseWebUrl(url), { url }));
  }

  it("encodes characters that no address may hold, so that no program misreads them", () => {
    assert.deepEqual(parseWebUrl("https://example.com/ü?q=<a>"), {
      url: "https://example.com/%C3%BC?q=%3Ca%3E",
    });
    assert.deepEqual(parseWebUrl("https://bücher.example/"), { url: "https://xn--bcher-kva.example/" });
    assert.deepEqual(parseWebUrl('https://example.com/"`^{|}'), {
      url: "https://example.com/%22%60%5E%7B|%7D",
    });
  });

  const refused: [string, string][] = [
    ["file scheme", "file:///etc/passwd"],
    ["custom scheme", "vscode://file/etc/passwd"],
    ["javascript", "javascript:alert(1)"],
    ["data", "data:text/html,hunter2"],
    ["ftp", "ftp://example.com/"],
    ["no scheme", "example.com"],
    ["scheme-relative", "//example.com/"],
    ["no slashes", "http:example.com"],
    ["one slash", "http:/example.com"],
    ["no host", "http://"],
    ["no host but a path", "https:///path"],
    ["no host but a port", "https://:80/"],
    ["user and password", "https://ada:hunter2@example.com/"],
    ["a user alone", "https://ada@example.com/"],
    ["empty user information", "https://@example.com/"],
    ["a backslash before the host", "https://example.com\\@evil.test/"],
    ["backslashes for slashes", "http:\\\\example.com"],
    ["a blank in front", " https://example.com/"],
    ["a line break inside, which parsers drop", "https://exam\nple.com/"],
    ["a tab inside", "https://example.com/\ta"],
    ["NUL", "https://example.com/\0"],
    ["an option", "--help"],
    ["a lone surrogate", "https://example.com/\ud800"],
    ["a bad port", "https://example.com:99999/"],
    ["a bad percent-encoding of the host", "https://exa%ple.com/"],
    ["an address over 16 KiB", `https://example.com/${"a".repeat(MAX_URL_BYTES)}`],
    ["nothing", ""],
  ];
  for (const [name, url] of refused) {
    it(`refuses ${name}, without quoting it [agent 29.6]`, () => {
      const parsed = parseWebUrl(url);
      assert.ok("fault" in parsed);
      assert.doesNotMatch(parsed.fault, /hunter2|example/);
    });
  }

  it("an accepted address is printable ASCII: http scheme, host, no credentials [agent 29.6]", () => {
    const piece = fc.constantFrom(
      "http://",
      "https://",
      "@",
      ":",
      "/",
      "a",
      "\\",
      " ",
      "\n",
      "ü",
      "%",
      "[",
      "?",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const parsed = parseWebUrl(pieces.join(""));
        if ("fault" in parsed) return;
        assert.match(parsed.url, /^https?:\/\/[\x21-\x7e]+$/i);
        const { username, password, hostname } = new URL(parsed.url);
        assert.equal(username + password, "");
        assert.notEqual(hostname, "");
      }),
      { numRuns: 2000 },
    );
  });
});
