import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import type { ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError } from "../errors.ts";
import { BitmapFile, encodeBitmapFile, type BitmapFileContent } from "./bitmap-file.ts";
import { bitmapLength } from "./ewah.ts";

const folder = mkdtempSync(join(tmpdir(), "bitmap-file-"));
after(() => rmSync(folder, { recursive: true }));

const environment = {
  ...process.env,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example",
  GIT_COMMITTER_NAME: "c",
  GIT_COMMITTER_EMAIL: "c@example",
};

/** A bare repository with one pack, its bitmaps written by git, and the pack's objects in both orders. */
function packedRepository(format: ObjectFormat) {
  const path = join(folder, format);
  mkdirSync(path);
  const git = (...args: string[]): string =>
    execFileSync("git", args, {
      cwd: path,
      env: environment,
      encoding: "utf8",
      maxBuffer: 1e8,
      stdio: "pipe",
    }).trim();
  git("init", "-q", "--bare", `--object-format=${format}`, ".");
  let stream = "";
  for (let i = 1; i <= 300; i++) {
    stream += `commit refs/heads/b${i % 3}\nmark :${i}\ncommitter c <c@example> ${i} +0000\ndata 1\n${i % 10}\n`;
    if (i > 3) stream += `from :${i - 3}\n${i % 50 === 0 ? `merge :${i - 1}\n` : ""}`;
    stream += `M 100644 inline f${i % 17}/g${i % 5}\ndata ${String(i).length}\n${i}\n`;
  }
  execFileSync("git", ["fast-import", "--quiet"], { cwd: path, env: environment, input: stream });
  git("repack", "-qadb");
  const name = readdirSync(join(path, "objects/pack")).find((file) => file.endsWith(".idx")) ?? "";
  const pack = join(path, "objects/pack", name.slice(0, -4));
  return { path, git, pack };
}

for (const format of ["sha1", "sha256"] as const) {
  describe(`.bitmap file, ${format}`, () => {
    const { git, pack, path } = packedRepository(format);
    const listing = execFileSync("git", ["show-index", `--object-format=${format}`], {
      input: readFileSync(`${pack}.idx`),
      encoding: "utf8",
      cwd: path,
    });
    const objects = listing
      .trim()
      .split("\n")
      .map((line, indexPosition) => {
        const [offset, oid] = line.split(" ");
        return { offset: Number(offset), oid: oid ?? "", indexPosition };
      });
    const inPackOrder = objects.toSorted((a, b) => a.offset - b.offset);
    const packPosition = new Map(inPackOrder.map(({ oid }, position) => [oid, position]));
    const reached = (bitmap: Uint32Array): string[] =>
      inPackOrder
        .filter((_, position) => ((bitmap[position >>> 5] ?? 0) >>> (position & 31)) & 1)
        .map(({ oid }) => oid)
        .toSorted();
    const reachableByGit = (oid: string): string[] =>
      git("rev-list", "--objects", "--no-object-names", oid).split("\n").toSorted();

    it("reads what git wrote: every selected commit reaches what rev-list says", () => {
      const file = new BitmapFile(readFileSync(`${pack}.bitmap`), objects.length, format);
      assert.ok(file.commits.length > 3);
      for (const indexPosition of file.commits) {
        const bitmap = new Uint32Array(bitmapLength(objects.length));
        assert.ok(file.addReachable(indexPosition, bitmap));
        assert.deepEqual(reached(bitmap), reachableByGit(objects[indexPosition]?.oid ?? ""));
      }
    });

    it("is used by git when written here", () => {
      const tips = git("rev-list", "--max-count=40", "--all").split("\n");
      const bitmapOf = (oids: readonly string[]): Uint32Array => {
        const bitmap = new Uint32Array(bitmapLength(objects.length));
        for (const oid of oids) {
          const position = packPosition.get(oid) ?? 0;
          bitmap[position >>> 5] = (bitmap[position >>> 5] ?? 0) | (1 << (position & 31));
        }
        return bitmap;
      };
      const typed = git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)").split(
        "\n",
      );
      const ofType = (type: string): Uint32Array =>
        bitmapOf(
          typed.filter((line) => line.startsWith(`${type} `)).map((line) => line.slice(type.length + 1)),
        );
      const packBytes = readFileSync(`${pack}.pack`);
      const content: BitmapFileContent = {
        format,
        packChecksum: packBytes.subarray(packBytes.length - (format === "sha1" ? 20 : 32)),
        objectCount: objects.length,
        types: {
          commits: ofType("commit"),
          trees: ofType("tree"),
          blobs: ofType("blob"),
          tags: ofType("tag"),
        },
        commits: tips.map((oid) => ({
          indexPosition: objects.findIndex((object) => object.oid === oid),
          reaches: bitmapOf(reachableByGit(oid)),
        })),
      };
      rmSync(`${pack}.bitmap`);
      writeFileSync(`${pack}.bitmap`, encodeBitmapFile(content), { mode: 0o444 });
      git("rev-list", "--test-bitmap", tips[0] ?? "");
      const counted = git("rev-list", "--count", "--objects", "--use-bitmap-index", "--all");
      assert.equal(counted, git("rev-list", "--count", "--objects", "--all"));
    });

    it("refuses every cut and every flipped bit", () => {
      const good = readFileSync(`${pack}.bitmap`);
      for (let length = 0; length < good.length; length += 41) {
        assert.throws(() => new BitmapFile(good.subarray(0, length), objects.length, format), GitStoreError);
      }
      for (let byte = 0; byte < good.length; byte += 29) {
        const bad = Buffer.from(good);
        bad[byte] = (bad[byte] ?? 0) ^ (1 << (byte % 8));
        assert.throws(() => new BitmapFile(bad, objects.length, format), GitStoreError);
      }
    });
  });
}
