import assert from "node:assert/strict";
import fs, { appendFileSync, writeFileSync } from "node:fs";
import {
  appendFile,
  link,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it, mock } from "node:test";
import { findPlaces } from "../../agent-files/places.ts";
import { InPlaceJournal, finishInPlace } from "./in-place.ts";
import { WriterLock } from "../lock.ts";
import { TargetPolicy } from "./target-policy.ts";
import { writeTarget, type Merge, type WriteResult } from "./write-target.ts";

let home = "";
let file = "";
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "writer-"));
  file = join(home, "f");
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function write(merge: Merge, beforeChange?: () => Promise<void>): Promise<WriteResult> {
  const places = findPlaces({ HOME: home });
  const target = await new TargetPolicy(places, ["~"], []).resolve("~/f");
  return writeTarget(
    {
      path: "~/f",
      target,
      merge,
      mode: 0o600,
      dirMode: 0o700,
      ...(beforeChange !== undefined && { beforeChange }),
    },
    new InPlaceJournal(places.state),
  );
}

const append =
  (line: string): Merge =>
  (existing) => {
    const text = existing?.toString() ?? "";
    return Buffer.from(text.includes(line) ? text : text + line);
  };

describe("writing against an editor that saves at the same time", () => {
  it("in place: the edit is kept and the merge is made again from it [agent 13.6]", async () => {
    await writeFile(file, "a\n");
    const result = await write(append("ours\n"), async () => appendFileSync(file, "edited\n"));
    assert.equal(await readFile(file, "utf8"), "a\nedited\nours\n");
    assert.equal(result.changed, true);
  });

  it("by rename: the edit is kept and the merge is made again from it [agent 13.6]", async () => {
    await writeFile(file, "a\n");
    await write(append("ours\n"), async () => {
      await writeFile(`${file}.new`, "renamed in\n");
      await rename(`${file}.new`, file);
    });
    assert.equal(await readFile(file, "utf8"), "renamed in\nours\n");
  });

  it("that makes the file first: it is merged into, not replaced", async () => {
    await write(append("ours\n"), async () => writeFileSync(file, "theirs\n"));
    assert.equal(await readFile(file, "utf8"), "theirs\nours\n");
  });

  it("without end: it gives up with an error, and the last content is whole", async () => {
    await writeFile(file, "a\n");
    let count = 0;
    const merge: Merge = () => {
      appendFileSync(file, `edit ${++count}\n`);
      return Buffer.from(`ours ${count}\n`);
    };
    await assert.rejects(write(merge), { code: "target_busy" });
    assert.match(await readFile(file, "utf8"), /^(ours|a|edit)/);
  });

  it("while the merge of a file with two names takes its time: it is merged again [agent 13.6]", async () => {
    await writeFile(file, "a\n");
    await link(file, join(home, "second"));
    let saved = false;
    await write(async (existing) => {
      if (!saved) await appendFile(file, "edited\n");
      saved = true;
      return append("ours\n")(existing);
    });
    assert.equal(await readFile(file, "utf8"), "a\nedited\nours\n");
  });

  it("no temporary file is left", async () => {
    await writeFile(file, "a\n");
    await write(append("ours\n"), async () => appendFileSync(file, "edited\n"));
    assert.deepEqual(await readdir(home), ["f"]);
  });
});

describe("a write in place that did not finish", () => {
  it("is taken up again from the journal's copy [agent 13.5]", async () => {
    const journal = new InPlaceJournal(findPlaces({ HOME: home }).state);
    await writeFile(file, "trunc");
    await journal.begin(file, Buffer.from("whole\n"));
    await write(append("ours\n"));
    assert.equal(await readFile(file, "utf8"), "whole\nours\n");
  });

  it("is taken back, also from a file that is gone, and the journal is empty then", async () => {
    const { state } = findPlaces({ HOME: home });
    const journal = new InPlaceJournal(state);
    assert.deepEqual(await journal.unfinished(), []);
    await writeFile(file, "part of what was to be written");
    await journal.begin(file, Buffer.from("whole\n"));
    await journal.begin(join(home, "gone"), Buffer.from("gone\n"));
    assert.deepEqual((await journal.unfinished()).toSorted(), [file, join(home, "gone")].toSorted());
    for (const each of await journal.unfinished()) await finishInPlace(each, journal);
    assert.equal(await readFile(file, "utf8"), "whole\n");
    assert.deepEqual(await readdir(home), [".local", "f"]);
    assert.deepEqual(await readdir(join(state, "in-place")), []);
  });
});

describe("a folder that is exchanged for another after it was checked [agent 12.7]", () => {
  for (const [name, before] of [
    ["a new file is not made in it", undefined],
    ["a file in it is not replaced", "a\n"],
  ] as const) {
    it(name, async () => {
      const folder = join(home, "d");
      const places = findPlaces({ HOME: home });
      await mkdir(folder, { mode: 0o700 });
      if (before !== undefined) await writeFile(join(folder, "f"), before);
      const target = await new TargetPolicy(places, ["~"], []).resolve("~/d/f");
      const beforeChange = async (): Promise<void> => {
        await rename(folder, `${folder}-old`);
        await mkdir(folder, { mode: 0o700 });
        if (before !== undefined) await writeFile(join(folder, "f"), before);
      };
      const request = {
        path: "~/d/f",
        target,
        merge: append("ours\n"),
        mode: 0o600,
        dirMode: 0o700,
        beforeChange,
      };
      await assert.rejects(writeTarget(request, new InPlaceJournal(places.state)), {
        code: "target_busy",
        message: /a folder of its path was replaced during the write/,
      });
      for (const each of [folder, `${folder}-old`]) {
        assert.deepEqual(await readdir(each), before === undefined ? [] : ["f"]);
        if (before !== undefined) assert.equal(await readFile(join(each, "f"), "utf8"), before);
      }
    });
  }
});

describe("a file that cannot be renamed over", () => {
  it("EBUSY: is written in place, keeps its inode, and the result tells it [agent 13.5]", async () => {
    await writeFile(file, "a\nlonger than what follows\n");
    const { ino } = await stat(file);
    // A mount point, which a test cannot make.
    const busy = mock.method(fs, "renameSync", () => {
      throw Object.assign(new Error("busy"), { code: "EBUSY" });
    });
    syncBuiltinESMExports();
    try {
      const result = await write(() => Buffer.from("ours\n"));
      assert.deepEqual([result.changed, result.inPlace], [true, true]);
    } finally {
      busy.mock.restore();
      syncBuiltinESMExports();
    }
    assert.equal(busy.mock.callCount(), 1);
    assert.deepEqual([await readFile(file, "utf8"), (await stat(file)).ino], ["ours\n", ino]);
    assert.deepEqual(await readdir(join(home, ".local/state/daemon/in-place")), [], "the copy aside is gone");
    assert.deepEqual((await readdir(home)).toSorted(), [".local", "f"]);
  });
});

describe("the writer lock", () => {
  it("is one writer's, ends with it, and is 0600 [agent 13.10]", async () => {
    const state = join(home, "state");
    const first = await WriterLock.acquire(state);
    await assert.rejects(WriterLock.acquire(state, 0), { code: "locked" });
    assert.equal((await stat(join(state, "lock.db"))).mode & 0o777, 0o600);
    first[Symbol.dispose]();
    (await WriterLock.acquire(state, 0))[Symbol.dispose]();
  });
});
