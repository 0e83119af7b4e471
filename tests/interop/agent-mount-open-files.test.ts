import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { goFileReader, onPath, spawnGroup } from "@devplat/testkit";
import { mountStand, untilText, type MountStand } from "./agent-mount-stand.ts";

const TIMEOUT_MS = 480_000;
const SOURCES = join(import.meta.dirname, "agent-mount-tools");
/** Programs that hold a file open and read it by several calls, each time a line arrives. */
const READERS = [
  { language: "Python", command: "python3", args: [join(SOURCES, "reader.py")] },
  { language: "Go", command: goFileReader(), args: [] },
  {
    language: "Java",
    command: onPath("java") ?? "java",
    args: ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", join(SOURCES, "Reader.java")],
  },
];

/** Text by each way to read. */
interface Seen {
  /** By the descriptor that was opened first. */
  readonly held: string[];
  /** By the path. */
  readonly now: string[];
}

interface Holder {
  read(): Promise<Seen>;
  end(): Promise<void>;
}

function hold(command: string, args: readonly string[]): Holder {
  const child = spawnGroup(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const { stdin, stdout } = child;
  assert.ok(stdin && stdout);
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    read: async () => {
      stdin.write("\n");
      const { value, done } = await lines.next();
      assert.ok(done !== true, `${command} ended`);
      return JSON.parse(value) as Seen;
    },
    end: async () => {
      const closed = once(child, "close");
      stdin.end();
      await closed;
    },
  };
}

/** Document of a secret with this value. */
const documentOf = (value: string): string => `{\n  "value": "${value}"\n}\n`;

describe("a file on the mount that changes while programs hold it open", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  before(async () => {
    stand = await mountStand("agent-mount-open", "layout: both, cache_ttl: 5m");
  });
  after(() => stand.remove());

  for (const { language, command, args } of READERS) {
    it(`keeps its version for ${language} by read, pread and mmap [agent 38.2]`, async () => {
      const name = `held/${language}`;
      const sizes = [100, 300_000, 20_000, 5];
      const values = sizes.map((size, index) => String(index).repeat(size));
      const [first = "", ...others] = values;
      await stand.store(name, JSON.stringify({ value: first }));
      for (const [path, textOf] of [
        [stand.at(`${name}.json`), documentOf],
        [stand.at(`${name}.d/value`), String],
      ] as const) {
        await stand.store(name, JSON.stringify({ value: first }));
        await untilText(path, textOf(first));
        const old = hold(command, [...args, path]);
        const initial = await old.read();
        const ways = initial.held.length;
        assert.ok(ways >= 3);
        assert.deepEqual(initial, {
          held: Array(ways).fill(textOf(first)),
          now: Array(2).fill(textOf(first)),
        });
        for (const value of others) {
          await stand.store(name, JSON.stringify({ value }));
          await untilText(path, textOf(value));
          // Both from the same program at the same time, and the new version from a program that opens it now.
          const expected = { held: Array(ways).fill(textOf(first)), now: Array(2).fill(textOf(value)) };
          assert.deepEqual(await old.read(), expected);
        }
        const last = textOf(others.at(-1) ?? "");
        const other = hold(command, [...args, path]);
        const [both, fresh] = await Promise.all([old.read(), other.read()]);
        assert.deepEqual(new Set(both.held), new Set([textOf(first)]));
        assert.deepEqual(new Set([...fresh.held, ...fresh.now]), new Set([last]));
        await Promise.all([old.end(), other.end()]);
      }
    });
  }
});
