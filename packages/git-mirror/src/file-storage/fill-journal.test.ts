import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { FillJournal } from "./fill-journal.ts";

const oid = (digit: string): string => digit.repeat(40);

describe("FillJournal", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "journal-"));
    await mkdir(join(folder, "objects", "pack"), { recursive: true });
    await mkdir(join(folder, "objects", "info"));
  });
  afterEach(() => rm(folder, { recursive: true }));
  const name = (digit: string): string => `pack-${oid(digit)}`;
  const put = async (digit: string): Promise<void> => {
    for (const kind of ["pack", "rev", "idx", "reach"]) {
      await writeFile(join(folder, "objects", "pack", `${name(digit)}.${kind}`), "");
    }
  };
  const packs = async (): Promise<string[]> =>
    (await readdir(join(folder, "objects", "pack"))).filter((file) => file.endsWith(".idx"));

  it("undo removes the packs that came since begin, with all of their files", async () => {
    const journal = new FillJournal(folder);
    await put("a");
    await journal.begin([name("a")]);
    await put("b");
    await writeFile(join(folder, "objects", "info", "commit-graph"), "");
    assert.equal(await new FillJournal(folder).isOpen(), true);
    await new FillJournal(folder).undo();
    assert.deepEqual(await packs(), [`${name("a")}.idx`]);
    assert.equal((await readdir(join(folder, "objects", "pack"))).length, 4);
    assert.deepEqual(await readdir(join(folder, "objects", "info")), []);
    assert.equal(await journal.isOpen(), false);
  });

  it("undo removes the commit-graph before the packs whose commits it may name", async () => {
    const journal = new FillJournal(folder);
    await journal.begin([]);
    await writeFile(join(folder, "objects", "info", "commit-graph"), "");
    // A folder cannot be removed like a file, so undo ends there.
    await mkdir(join(folder, "objects", "pack", `${name("b")}.idx`));
    await assert.rejects(journal.undo());
    assert.deepEqual(await readdir(join(folder, "objects", "info")), []);
    assert.equal(await journal.isOpen(), true);
  });

  it("undo after end, or without begin, removes nothing", async () => {
    const journal = new FillJournal(folder);
    await put("a");
    await journal.undo();
    await journal.begin([]);
    await journal.end();
    await journal.undo();
    assert.deepEqual(await packs(), [`${name("a")}.idx`]);
  });
});
