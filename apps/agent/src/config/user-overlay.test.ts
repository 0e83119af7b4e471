import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseConfig } from "./load.ts";
import { withUserOverlay } from "./user-overlay.ts";

const config = parseConfig({
  path: "s.yaml",
  text: "store: {driver: embedded}\nfuse: {read_write: true, mountpoint: ~/system}\n",
});
const fuse = (text: string, over = config) => withUserOverlay(over, "u.yaml", text).config.fuse;

describe("the user's overlay of a system configuration", () => {
  const NOT_HERE =
    "has no effect: this host has a system configuration, over which this file may only set fuse";
  const warned: [string, string, string[]][] = [
    [
      "a whole configuration from the time before the system's",
      "store: {driver: vault}\nrules:\n  - broken\nfuse: {layout: both, cache_ttl: 1m}\nweb: 3\n",
      [
        `u.yaml:1:1: store ${NOT_HERE}`,
        `u.yaml:2:1: rules ${NOT_HERE}`,
        `u.yaml:4:8: fuse.layout ${NOT_HERE}`,
        `u.yaml:5:1: web ${NOT_HERE}`,
      ],
    ],
    ["nothing where nothing is set", "fuse: {enabled: false}\n", []],
  ];
  for (const [name, text, expected] of warned) {
    it(`warns of ${name}, and applies the rest [agent 3.20]`, () => {
      const overlaid = withUserOverlay(config, "u.yaml", text);
      assert.deepEqual(overlaid.warnings, expected);
      assert.deepEqual(overlaid.config.store, config.store);
      assert.equal(overlaid.config.fuse.enabled, false);
      assert.equal(overlaid.config.fuse.cache_ttl, text.includes("1m") ? 60_000 : 30_000);
    });
  }

  const refused: [string, string, RegExp][] = [
    [
      "a key that no configuration has",
      "fues: {}\n",
      /u\.yaml:1:1: fues: unknown key; did you mean 'fuse'\?/,
    ],
    [
      "such a key below fuse",
      "fuse: {cache_tll: 1m}\n",
      /fuse\.cache_tll: unknown key; did you mean 'cache_ttl'\?/,
    ],
    ["a wrong type", "fuse: {enabled: 3}\n", /u\.yaml:1:8: fuse\.enabled: expected true or false/],
    ["a list", "[fuse]\n", /u\.yaml:1:1: expected a mapping/],
  ];
  for (const [name, text, message] of refused) {
    it(`refuses ${name} [agent 3.20]`, () =>
      assert.throws(() => withUserOverlay(config, "u.yaml", text), message));
  }

  it("mountpoint and cache_ttl: the user wins; read_write: only if both want it [agent 3.21]", () => {
    const own = fuse("fuse: {mountpoint: ~/mine, cache_ttl: 1m, read_write: false}\n");
    assert.deepEqual([own.mountpoint, own.cache_ttl, own.read_write], ["~/mine", 60_000, false]);
    assert.equal(fuse("").read_write, true);
    const closed = { ...config, fuse: { ...config.fuse, read_write: false } };
    assert.equal(fuse("fuse: {read_write: true}\n", closed).read_write, false);
  });

  it("enabled: the user cannot take away what the system wants [agent 3.21]", () => {
    assert.equal(fuse("fuse: {enabled: true}\n").enabled, true);
    const on = { ...config, fuse: { ...config.fuse, enabled: true } };
    assert.equal(fuse("fuse: {enabled: false}\n", on).enabled, true);
  });
});
