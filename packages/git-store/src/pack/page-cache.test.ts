import assert from "node:assert/strict";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/git.test-kit.ts";
import { noiseOf } from "../../test/pack-builder.test-kit.ts";
import { PageCache } from "./page-cache.ts";

const GIB = 1024 ** 3;

test("copy reads a range of more than 2 GiB in several reads", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "file");
  const content = noiseOf(200_000);
  writeFileSync(path, content);
  const fd = openSync(path, "r");
  try {
    // The file ends early, so that the test needs address space but no memory.
    const target = Buffer.allocUnsafeSlow(3 * GIB);
    const file = { id: 1, fd, path, size: 3 * GIB };
    assert.throws(() => new PageCache().copy(file, 0, target, 0, 3 * GIB), { code: "truncated" });
    assert.ok(target.subarray(0, content.length).equals(content));
  } finally {
    closeSync(fd);
  }
});
