import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, it } from "node:test";
import { ageOf, hasHistory } from "../../bench/lib/measured-code.ts";
import { reasonOf, REASONS } from "../../bench/lib/reasons.ts";
import { BENCHMARKS } from "../../bench/lib/registry.ts";
import { verdict } from "../../bench/lib/report.ts";
import { readResults, renderedFiles } from "../../bench/lib/results-index.ts";
import { ROOT } from "./sources.ts";

/** Share of the measured lines that may have changed since a run. See docs/decisions/0051-age-of-results.md. */
const MAX_CHANGED_SHARE = 0.1;
/** Days between a run and the newest commit to the measured code. */
const MAX_DAYS = 30;
/** Results from before a run recorded its code. This list only gets shorter. */
const WITHOUT_RECORD = new Set([
  "agent-mount",
  "agent-ssh",
  "agent-ssh-idle",
  "agent-start",
  "agent-sync",
  "agent-volumes",
  "agent-web",
  "api-proxy",
  "growth",
  "ssh-signatures",
  "svc-tokens",
]);

const results = readResults();
const recorded = [...results].flatMap(([name, result]) =>
  result.code === undefined ? [] : [{ name, result, code: result.code }],
);

describe("results of benchmarks", () => {
  it("every result belongs to a benchmark that npm run bench knows", () => {
    assert.ok(results.size > 10);
    assert.deepEqual(
      [...results.keys()].filter((name) => !(name in BENCHMARKS)),
      [],
    );
  });

  it("every result records the code that it measured", () => {
    const without = [...results].filter(([, { code }]) => code === undefined).map(([name]) => name);
    assert.deepEqual(
      without.filter((name) => !WITHOUT_RECORD.has(name)),
      [],
    );
    const changed = recorded.filter(({ result, code }) => {
      return JSON.stringify(code.folders) !== JSON.stringify(BENCHMARKS[result.name]?.code);
    });
    assert.deepEqual(
      changed.map(({ name }) => `run npm run bench -- ${name}: its list of code is another one now`),
      [],
    );
  });

  it("no result was measured with uncommitted code", () => {
    const uncommitted = recorded.filter(({ code }) => code.uncommitted).map(({ name }) => name);
    assert.deepEqual(uncommitted, []);
  });

  it("every folder with measured code exists", () => {
    const folders = Object.values(BENCHMARKS).flatMap(({ code }) => code);
    assert.deepEqual(
      folders.filter((folder) => !existsSync(join(ROOT, folder))),
      [],
    );
  });

  it("no result is older than its code", { skip: !hasHistory() && "there is no full git history" }, () => {
    const old = recorded.flatMap(({ name, result, code }) => {
      const { changedShare, days } = ageOf(code, result.measured_at);
      if (changedShare <= MAX_CHANGED_SHARE && days <= MAX_DAYS) return [];
      const percent = (changedShare * 100).toFixed(0);
      return `run npm run bench -- ${name}: ${percent} % of its code changed, up to ${days.toFixed(0)} days later`;
    });
    assert.deepEqual(old, []);
  });

  it("an old commit counts as old", { skip: !hasHistory() && "there is no full git history" }, () => {
    const folders = ["apps/svc/src", "packages"];
    const commit = execFileSync("git", ["rev-list", "--max-parents=0", "HEAD"], {
      cwd: ROOT,
      encoding: "utf8",
    });
    const code = { folders, commit: commit.trim(), trees: {}, uncommitted: false };
    assert.ok(ageOf(code, "2026-11-21T10:00:00Z").changedShare > MAX_CHANGED_SHARE);
    assert.ok(ageOf(code, "2026-08-01T10:00:00Z").days > MAX_DAYS);
    const current = { ...code, commit: "HEAD" };
    assert.deepEqual(ageOf(current, "2026-08-01T10:00:00Z"), { changedShare: 0, days: 0 });
  });

  it("every missed target of a result has its reason", () => {
    const silent = recorded.flatMap(({ name, result }) =>
      result.rows
        .filter((row) => verdict(row) === "missed" && reasonOf(name, row.what) === undefined)
        .map((row) => `${name}: ${row.what}`),
    );
    assert.deepEqual(silent, []);
  });

  it("every reason belongs to a row with a target", () => {
    const stale = Object.entries(REASONS).flatMap(([name, reasons]) => {
      const rows = (results.get(name)?.rows ?? []).filter(({ target }) => target !== undefined);
      return reasons
        .filter(([, text]) => !rows.some(({ what }) => reasonOf(name, what) === text))
        .map(([row]) => `${name}: ${row.source}`);
    });
    assert.deepEqual(stale, []);
  });

  it("every page made from results is as the results are", () => {
    const files = [...renderedFiles(results)];
    assert.ok(files.length > 2 * results.size);
    const old = files.filter(([path, text]) => !existsSync(path) || readFileSync(path, "utf8") !== text);
    assert.deepEqual(
      old.map(([path]) => `run npm run bench -- --render: ${relative(ROOT, path)} is not current`),
      [],
    );
  });
});
