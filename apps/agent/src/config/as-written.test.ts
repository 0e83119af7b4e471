import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stringify } from "yaml";
import { asWritten, redacted } from "./as-written.ts";
import { parseConfig } from "./load.ts";

const TEXT = `
store: { driver: embedded, mtls: { ttl: 36h, reissue_before: 7d } }
sync: { interval: 90s }
rules:
  - name: npm
    key: tools/npm
    target: { path: ~/.npmrc, format: ini, mode: "0640" }
    run: { command: [make, it], timeout: 5s }
  - name: env
    key: tools/npm
    target: { mount: app/.env, format: dotenv, base: ~/.env, allow: [/usr/bin/env], on_missing: error }
`;

describe("asWritten", () => {
  it("reads back as the configuration that it came from", () => {
    const config = parseConfig({ path: "config.yaml", text: TEXT });
    const again = parseConfig({ path: "again.yaml", text: stringify(asWritten(config)) });
    assert.deepEqual(again, config);
  });
});

describe("redacted", () => {
  it("masks the values of headers at any depth and keeps everything else", () => {
    const value = {
      a: [{ headers: { Authorization: "Bearer hidden" } }],
      headers: "hidden",
      n: null,
      b: true,
    };
    const shown = redacted(value);
    assert.deepEqual(shown, {
      a: [{ headers: { Authorization: "••••" } }],
      headers: "••••",
      n: null,
      b: true,
    });
  });
});
