import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatProgram } from "./format.ts";

describe("formatProgram", () => {
  const mozilla = "Mozilla/5.0";
  const webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";
  for (const [userAgent, shown] of [
    [`${mozilla} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0`, "Firefox 140 on Linux"],
    [
      `${mozilla} (X11; Linux x86_64) ${webkit} HeadlessChrome/156.0.0.0 Safari/537.36`,
      "Chrome 156 on Linux",
    ],
    [
      `${mozilla} (Windows NT 10.0; Win64; x64) ${webkit} Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0`,
      "Edge 141 on Windows",
    ],
    [
      `${mozilla} (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15`,
      "Safari 18 on macOS",
    ],
    [
      `${mozilla} (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1`,
      "Safari 18 on iPhone",
    ],
    [
      `${mozilla} (Linux; Android 15) ${webkit} Chrome/141.0.0.0 Mobile Safari/537.36`,
      "Chrome 141 on Android",
    ],
    ["svc-cli, node", "svc-cli, node"],
    [`${mozilla} (compatible; thing/1.0)`, `${mozilla} (compatible; thing/1.0)`],
    ["", "unknown"],
    [undefined, "unknown"],
  ] as const) {
    it(`shows ${userAgent ?? "none"} as ${shown}`, () => assert.equal(formatProgram(userAgent), shown));
  }
});
