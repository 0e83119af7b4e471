import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { exists, ifExists } from "./if-exists.ts";

describe("ifExists", () => {
  let folder = "";
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "if-exists-"));
    await writeFile(join(folder, "file"), "text");
  });
  after(() => rm(folder, { recursive: true }));

  it("gives the result of the operation", async () => {
    assert.equal(await ifExists(readFile(join(folder, "file"), "utf8")), "text");
  });

  it("is undefined if the file does not exist", async () => {
    assert.equal(await ifExists(readFile(join(folder, "none"))), undefined);
  });

  it("throws every other error", async () => {
    await assert.rejects(ifExists(readFile(folder)), { code: "EISDIR" });
    await assert.rejects(ifExists(readFile(join(folder, "file", "below"))), { code: "ENOTDIR" });
  });

  it("exists tells whether a path exists", async () => {
    assert.equal(await exists(join(folder, "file")), true);
    assert.equal(await exists(folder), true);
    assert.equal(await exists(join(folder, "none")), false);
    assert.equal(await exists(join(folder, "file", "below")), false);
  });
});
