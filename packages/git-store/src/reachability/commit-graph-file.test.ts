import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import type { ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError } from "../errors.ts";
import { decodeCommitGraph, encodeCommitGraph, type CommitTable } from "./commit-graph-file.ts";

const folder = mkdtempSync(join(tmpdir(), "commit-graph-"));
const environment = {
  ...process.env,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example",
  GIT_COMMITTER_NAME: "c",
  GIT_COMMITTER_EMAIL: "c@example",
};

/** A repository with a merge of five parents, two roots, and a time after 2106. */
function repository(format: ObjectFormat): { path: string; git: (...args: string[]) => string } {
  const path = join(folder, format);
  const gitAt = (date: string, ...args: string[]): string => {
    const env = { ...environment, GIT_COMMITTER_DATE: date, GIT_AUTHOR_DATE: date };
    return execFileSync("git", args, { cwd: path, env, encoding: "utf8" }).trim();
  };
  const git = (...args: string[]): string => gitAt("@0 +0000", ...args);
  mkdirSync(path);
  git("init", "-q", `--object-format=${format}`, ".");
  const tree = git("mktree", "--missing");
  const commit = (date: number, ...parents: string[]): string => {
    const parentArguments = parents.flatMap((parent) => ["-p", parent]);
    return gitAt(`@${date} +0000`, "commit-tree", tree, "-m", `${date}`, ...parentArguments);
  };
  const roots = [commit(1), commit(2)];
  const tips = roots.flatMap((root) => [commit(10, root), commit(11, root), commit(12, root)]);
  const octopus = commit(2 ** 33 + 7, ...tips.slice(0, 5));
  git("update-ref", "refs/heads/main", commit(2 ** 33 + 8, octopus, tips[5] ?? ""));
  git("commit-graph", "write", "--reachable");
  return { path, git };
}
after(() => rmSync(folder, { recursive: true }));

for (const format of ["sha1", "sha256"] as const) {
  describe(`commit-graph file, ${format}`, () => {
    const { path, git } = repository(format);
    const file = join(path, ".git/objects/info/commit-graph");
    const table: CommitTable = decodeCommitGraph(readFileSync(file), format);
    const width = format === "sha1" ? 20 : 32;
    const oid = (i: number): string =>
      Buffer.from(table.oids.subarray(i * width, (i + 1) * width)).toString("hex");

    it("reads what git wrote: every commit, its parents in order, its time", () => {
      const wanted = git("log", "--all", "--format=%H %ct %P").split("\n").toSorted();
      const read = Array.from({ length: table.count }, (_, i) =>
        [
          oid(i),
          table.times[i],
          ...[...table.parents.subarray(table.parentStart[i], table.parentStart[i + 1])].map(oid),
        ].join(" "),
      );
      assert.deepEqual(
        read.toSorted(),
        wanted.map((line) => line.trimEnd()),
      );
    });

    it("levels are one more than the highest of the parents'", () => {
      for (let i = 0; i < table.count; i++) {
        const parents = [...table.parents.subarray(table.parentStart[i], table.parentStart[i + 1])];
        assert.equal(table.levels[i], 1 + Math.max(0, ...parents.map((parent) => table.levels[parent] ?? 0)));
      }
    });

    it("is read and verified by git when written here", () => {
      writeFileSync(file, encodeCommitGraph(table), { mode: 0o600 });
      git("commit-graph", "verify");
      assert.equal(git("rev-list", "--count", "--all"), String(table.count));
      assert.deepEqual(decodeCommitGraph(readFileSync(file), format), table);
    });

    it("refuses every cut and every flipped bit", () => {
      const good = encodeCommitGraph(table);
      for (let length = 0; length < good.length; length += 7) {
        assert.throws(() => decodeCommitGraph(good.subarray(0, length), format), GitStoreError);
      }
      for (let byte = 0; byte < good.length; byte += 3) {
        const bad = Buffer.from(good);
        bad[byte] = (bad[byte] ?? 0) ^ (1 << (byte % 8));
        assert.throws(() => decodeCommitGraph(bad, format), GitStoreError);
      }
    });
  });
}
