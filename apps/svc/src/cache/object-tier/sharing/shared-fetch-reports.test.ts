import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LogFields, Logger } from "@devplat/base";
import { repositoryId } from "../../../access/repository-id.ts";
import { SharedFetchReports, type SharedFetchResult } from "./shared-fetch-reports.ts";

const ID = repositoryId("Acme", "Widgets");

describe("SharedFetchReports", () => {
  const reports = () => {
    const lines: LogFields[] = [];
    const counted: string[] = [];
    const info = (fields: LogFields): void => void lines.push(fields);
    const other = (): void => assert.fail("nothing is wrong");
    const logger: Logger = { debug: other, info, warn: other, error: other, child: () => logger };
    const metrics = { turn: (result: string): void => void counted.push(result) };
    return { lines, counted, made: new SharedFetchReports(metrics, logger) };
  };

  it("counts each turn, and logs those that waited for another instance", () => {
    const { lines, counted, made } = reports();
    const results: SharedFetchResult[] = [
      "led",
      "own",
      "unavailable",
      "shared",
      "failed",
      "private",
      "too_long",
      "late",
    ];
    for (const result of results) made.turn(ID, { result, fence: 7, waitedMs: 1.6 });
    assert.deepEqual(counted, results);
    const common = { repo: "acme/widgets", waited_ms: 2 };
    assert.deepEqual(lines, [
      { ...common, fence: 7 },
      { ...common, reason: "failed" },
      { ...common, reason: "private" },
      { ...common, reason: "too_long" },
      { ...common, fence: 7 },
    ]);
  });

  it("logs the end of a fetch for others with its number", () => {
    const { lines, made } = reports();
    made.led(ID, { fence: 7, state: "private", bytes: 12, ms: 3.4 });
    assert.deepEqual(lines, [
      { repo: "acme/widgets", fence: 7, state: "private", bytes: 12, duration_ms: 3 },
    ]);
  });
});
