import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger, systemClock, type Logger } from "@devplat/base";
import { ExportHealth } from "./export-health.ts";

describe("ExportHealth", () => {
  function started() {
    let now = 0;
    const lines: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      info: (fields, message) => lines.push(`${message} ${JSON.stringify(fields)}`),
      warn: (fields, message) => lines.push(`${message} ${JSON.stringify(fields)}`),
    };
    const clock = { ...systemClock, monotonic: () => now };
    const health = new ExportHealth({ signal: "traces", logger: () => logger, clock });
    return { health, lines, pass: (seconds: number) => void (now += seconds * 1000) };
  }

  it("logs the first failure and the recovery, and nothing between", () => {
    const { health, lines, pass } = started();
    health.note(undefined);
    for (let index = 0; index < 1000; index += 1) {
      health.note("ECONNREFUSED");
      pass(5);
    }
    for (let index = 0; index < 1000; index += 1) health.note(undefined);
    assert.deepEqual(lines, [
      'telemetry is not exported {"signal":"traces","reason":"ECONNREFUSED"}',
      'telemetry is exported again {"signal":"traces"}',
    ]);
  });

  it("logs one line a minute when every other batch fails", () => {
    const { health, lines, pass } = started();
    for (let second = 0; second < 600; second += 1) {
      health.note(second % 2 === 0 ? "the collector answered 503" : undefined);
      pass(1);
    }
    assert.ok(lines.length <= 11, `${lines.length} lines`);
  });
});
