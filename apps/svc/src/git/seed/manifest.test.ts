import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { it } from "node:test";
import type { StoredSeed } from "@devplat/git-mirror";
import { encodeManifest } from "./manifest.ts";

const oid = (digit: string): string => digit.repeat(40);
const name = `pack-${oid("a")}`;
const factsOf = (size: number): { size: number; sha256: string } => ({ size, sha256: "f".repeat(64) });
const SEED: StoredSeed = {
  name,
  origin: "https://code.example",
  format: "sha1",
  headRef: "refs/heads/main",
  madeAt: 1_795_860_000_000,
  objects: 7,
  refs: [
    { name: "refs/heads/main", oid: oid("1") },
    { name: 'refs/tags/a"b', oid: oid("2") },
  ],
  tips: [oid("1"), oid("2")],
  files: { pack: factsOf(100), idx: factsOf(20), rev: factsOf(30), graph: factsOf(40) },
};

it("the manifest of a seed is JSON with the keys of its description", () => {
  const file = (kind: string, size: number): object => ({
    name: `${name}.${kind}`,
    size,
    sha256: "f".repeat(64),
  });
  assert.deepEqual(JSON.parse(encodeManifest(SEED)), {
    object_format: "sha1",
    head: "refs/heads/main",
    made_at: new Date(SEED.madeAt).toISOString(),
    pack: { ...file("pack", 100), objects: 7 },
    idx: file("idx", 20),
    rev: file("rev", 30),
    commit_graph: file("graph", 40),
    refs: { "refs/heads/main": oid("1"), 'refs/tags/a"b': oid("2") },
    tips: [oid("1"), oid("2")],
  });
  const detached = { ...SEED, headRef: undefined, refs: [{ name: "HEAD", oid: oid("1") }] };
  assert.equal((JSON.parse(encodeManifest(detached)) as { head: unknown }).head, null);
});

it("sed reads the manifest of a seed line by line", () => {
  const read = (script: string): string =>
    execFileSync("sed", ["-n", script], { input: encodeManifest(SEED), encoding: "utf8" });
  assert.equal(read('s/^  "object_format": "\\(.*\\)",$/\\1/p'), "sha1\n");
  assert.equal(
    read('s/^  "idx": {"name":"\\([^"]*\\)","size":\\([0-9]*\\),.*/\\1 \\2/p'),
    `${name}.idx 20\n`,
  );
  assert.equal(
    read('/^  "tips": \\[$/,$s/^    "\\([0-9a-f]*\\)",\\{0,1\\}$/\\1/p'),
    `${oid("1")}\n${oid("2")}\n`,
  );
});
