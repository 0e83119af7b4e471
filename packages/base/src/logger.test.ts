import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { AppError, createLogger, type LoggerOptions } from "./index.ts";
import { GatheredLines } from "./logger.ts";

function lines(options: LoggerOptions, write: (logger: ReturnType<typeof createLogger>) => void): string[] {
  const out: string[] = [];
  write(createLogger({ ...options, destination: { write: (line) => void out.push(line) } }));
  return out;
}

describe("createLogger", () => {
  it("writes one JSON object for each line, with level, time, fields and message", () => {
    const [line] = lines({ format: "json" }, (log) =>
      log.child({ part: "sync" }).info({ rule: "npm" }, "written"),
    );
    const parsed = JSON.parse(line ?? "") as Record<string, unknown>;
    assert.match(String(parsed["time"]), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    assert.equal(parsed["level"], "info");
    assert.equal(parsed["part"], "sync");
    assert.equal(parsed["rule"], "npm");
    assert.equal(parsed["msg"], "written");
  });

  it("writes text on a terminal under auto, and JSON elsewhere [agent 18.2]", () => {
    const write = (log: ReturnType<typeof createLogger>): void => log.warn({ path: "/a b", n: 1 }, "slow");
    assert.match(
      lines({ isTerminal: true }, write)[0] ?? "",
      /^\d\d:\d\d:\d\d warn {2}slow path="\/a b" n=1\n$/,
    );
    assert.match(lines({ isTerminal: false }, write)[0] ?? "", /^\{/);
  });

  it("escapes control characters in text, also those that JSON does not escape", () => {
    const [line = ""] = lines({ format: "text" }, (logger) =>
      logger.info({ user_agent: "a\u001b[2J\u009b2Jb\u007f" }, "request"),
    );
    assert.match(line, /user_agent="a\\u001b\[2J\\u009b2Jb\\u007f"\n$/);
  });

  it("drops lines below the level", () => {
    assert.equal(lines({ level: "warn" }, (log) => log.info({}, "no")).length, 0);
  });

  it("gives an error's code, message and remedy, and its stack only at debug", () => {
    const err = new AppError("unavailable", "cannot reach the store", { remedy: "retry" });
    const at = (level: "info" | "debug"): string =>
      lines({ format: "json", level }, (log) => log.error({ err }, "failed"))[0] ?? "";
    assert.match(at("info"), /"code":"unavailable","remedy":"retry"/);
    assert.doesNotMatch(at("info"), /stack/);
    assert.match(at("debug"), /stack/);
  });
});

const MODULE = new URL("logger.ts", import.meta.url).href;

describe("GatheredLines", () => {
  it("lines of one turn are one write, in their order, and later ones follow", async () => {
    const written: string[] = [];
    const gathered = new GatheredLines((text) => written.push(text));
    gathered.write("a\n");
    await Promise.resolve();
    gathered.write("b\n");
    assert.deepEqual(written, []);
    await nextTurn();
    assert.deepEqual(written, ["a\nb\n"]);
    gathered.write("c\n");
    await nextTurn();
    assert.deepEqual(written, ["a\nb\n", "c\n"]);
  });

  for (const [end, code] of [
    ["process.exit(3);", 3],
    ["throw new Error('fatal');", 1],
    ["", 0],
  ] as const) {
    it(`no line is lost when the process ends by "${end}"`, () => {
      const program = `
        import { GatheredLines } from ${JSON.stringify(MODULE)};
        const lines = new GatheredLines((text) => process.stderr.write(text));
        lines.write("one\\n");
        lines.write("two\\n");
        ${end}`;
      const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
      assert.equal(child.status, code);
      assert.ok(child.stderr.includes("one\ntwo\n"), child.stderr);
    });
  }
});
