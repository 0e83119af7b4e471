import assert from "node:assert/strict";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import type { Config } from "../config/schema.ts";
import type { SvcError } from "../errors.ts";
import { makeCacheFolder } from "./make-cache-folder.ts";

describe("makeCacheFolder", () => {
  it("makes the folder for its owner alone, and names key and reason if it cannot", async () => {
    const folder = await tempFolder("svc-cache-folder");
    const path = join(folder.path, "a", "b");
    await makeCacheFolder({ cache: { object_bucket: undefined } as Config["cache"] }, path);
    assert.equal((await stat(path)).mode & 0o777, 0o700);
    const file = join(folder.path, "file");
    await writeFile(file, "");
    for (const [bucket, key] of [
      [undefined, "cache.storage_path"],
      ["bucket", "cache.local_path"],
    ] as const) {
      const cache = { object_bucket: bucket } as Config["cache"];
      await assert.rejects(makeCacheFolder({ cache }, join(file, "cache")), (error: SvcError) => {
        assert.equal(error.code, "config_refused");
        assert.match(error.message, /the cache folder .*file\/cache cannot be used: .*not a directory/);
        assert.match(error.hint ?? "", new RegExp(key));
        return true;
      });
    }
    await folder.remove();
  });
});
