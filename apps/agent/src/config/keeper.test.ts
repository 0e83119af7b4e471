import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Logger } from "@devplat/base";
import { ConfigError } from "@devplat/config";
import { HandClock } from "../sync/clock.test-kit.ts";
import { ConfigKeeper, type ConfigState } from "./keeper.ts";
import { locateIn } from "@devplat/config/document";
import { parseConfig, type LoadedConfig } from "./load.ts";

const MINUTE_MS = 60_000;
const STORE = "store: {driver: embedded}\n";

/** Text of the files. A fault where they cannot be used. */
let text = STORE;
let loads = 0;
let applied: ConfigState[] = [];
let warnings: string[] = [];
let clock: HandClock;
let stop: AbortController;
let running: Promise<void> | undefined;

const logger = {
  warn: (fields: { sections?: readonly string[] }, message: string) =>
    warnings.push([message, ...(fields.sections ?? [])].join(": ")),
  debug: () => undefined,
} as unknown as Logger;

function loaded(): LoadedConfig {
  const locate = locateIn("c.yaml", text);
  return { config: parseConfig({ path: "c.yaml", text }), locate, sources: ["c.yaml"], warnings: [] };
}

function keeper(): ConfigKeeper {
  return new ConfigKeeper({
    loaded: loaded(),
    load: () => {
      loads += 1;
      return Promise.resolve().then(loaded);
    },
    apply: (_config, state) => {
      applied.push(state);
      return Promise.resolve();
    },
    clock,
    logger,
  });
}

beforeEach(() => {
  text = STORE;
  loads = 0;
  applied = [];
  warnings = [];
  clock = new HandClock();
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await running;
});

/** Lets everything happen that does not wait for the clock. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the running daemon's configuration", () => {
  it("is read again every five minutes, without being asked [agent 3.28]", async () => {
    running = keeper().run(stop.signal);
    await turn();
    clock.advance(5 * MINUTE_MS - 1);
    await turn();
    assert.equal(loads, 0);
    for (let times = 1; times <= 3; times++) {
      clock.advance(times === 1 ? 1 : 5 * MINUTE_MS);
      await turn();
      assert.equal(loads, times);
    }
  });

  it("with remote_config in each refresh_interval, if that is shorter [agent 3.28]", async () => {
    text = `${STORE}remote_config: {url: "https://x.example/c.yaml", refresh_interval: 2m}\n`;
    running = keeper().run(stop.signal);
    await turn();
    clock.advance(2 * MINUTE_MS);
    await turn();
    assert.equal(loads, 1);
  });

  it("an invalid one keeps the old one, is shown in the status, and warned of once [agent 3.30]", async () => {
    const subject = keeper();
    const before = subject.current;
    text = `${STORE}rules: 3\n`;
    for (let i = 0; i < 2; i++) await subject.reload(stop.signal);
    assert.equal(subject.current, before);
    const reason = "the new configuration is not used: c.yaml:2:1: rules: expected a list";
    assert.deepEqual(applied.at(-1)?.problems, [reason]);
    assert.deepEqual(warnings, [reason]);
    text = STORE;
    await subject.reload(stop.signal);
    assert.deepEqual(applied.at(-1)?.problems, []);
  });

  it("names the sections that need a new start in one warning, and no other section [agent 3.29]", async () => {
    const subject = keeper();
    text = `${STORE}sync: {interval: 1m}
rules: [{name: r, key: k, target: {path: ~/f, format: yaml}}]
enrolments: {a: {engine: copy, from: b}}
ssh: {insecure_ignore_host_key: true}
remote_config: {url: "https://x.example/c.yaml"}
`;
    await subject.reload(stop.signal);
    assert.deepEqual([applied.at(-1)?.reloadNeeded, warnings], [[], []]);
    text += "web: {enabled: true}\napi: {enabled: true}\n";
    for (let i = 0; i < 2; i++) await subject.reload(stop.signal);
    assert.deepEqual(applied.at(-1)?.reloadNeeded, ["web", "api"]);
    assert.deepEqual(warnings, ["changed sections apply after the next start: web: api"]);
  });

  it("an error without a configuration fault keeps the old configuration, too", async () => {
    const subject = new ConfigKeeper({
      loaded: loaded(),
      load: () => Promise.reject(new ConfigError("config_unreadable", [])),
      apply: (_config, state) => Promise.resolve(void applied.push(state)),
      clock,
      logger,
    });
    await subject.reload(stop.signal);
    assert.match(applied[0]?.problems[0] ?? "", /^the new configuration is not used: /);
  });
});
