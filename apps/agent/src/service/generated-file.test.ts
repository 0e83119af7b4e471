import assert from "node:assert/strict";
import { mkdir, readdir, readFile, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import fc from "fast-check";
import { isUnedited, readGenerated, removeGenerated, withMark, writeGenerated } from "./generated-file.ts";

const NOW = { force: false, dryRun: false };
const marked = (text: string): string => withMark(`[Unit]\n${text}`, "[Unit]\n", (mark) => `# ${mark}.`);

describe("files that the service commands write", () => {
  const folders: TempFolder[] = [];
  after(async () => {
    for (const folder of folders) await folder.remove();
  });
  const newFile = async (): Promise<{ folder: string; path: string }> => {
    const folder = await tempFolder("generated");
    folders.push(folder);
    return { folder: folder.path, path: join(folder.path, "below", "x.service") };
  };

  it("any change of the text or of the mark is an edit", () => {
    const line = fc.string({ unit: "grapheme", maxLength: 20 });
    fc.assert(
      fc.property(line, line, (text, more) => {
        const whole = marked(text);
        assert.equal(isUnedited(whole), true);
        assert.equal(isUnedited(`${whole}${more}`), more === "");
        assert.equal(isUnedited(`[Unit]\n${text}`), false);
      }),
    );
    const digit = /sha256 ([0-9a-f])/;
    assert.equal(
      isUnedited(marked("a").replace(digit, (_, first) => `sha256 ${first === "0" ? "1" : "0"}`)),
      false,
    );
  });

  it("a file is written once, and replaced when the wanted text is another one", async () => {
    const { path } = await newFile();
    assert.deepEqual(await writeGenerated(path, marked("a"), { ...NOW, dryRun: true }), {
      path,
      outcome: "written",
    });
    assert.equal((await readGenerated(path)).state, "missing");
    assert.equal((await writeGenerated(path, marked("a"), NOW)).outcome, "written");
    assert.equal((await writeGenerated(path, marked("a"), NOW)).outcome, "unchanged");
    assert.deepEqual(await writeGenerated(path, marked("b"), NOW), { path, outcome: "replaced" });
    assert.equal(await readFile(path, "utf8"), marked("b"));
  });

  it("an edited file stays, and is replaced by force after a copy", async () => {
    const { folder, path } = await newFile();
    await writeGenerated(path, marked("a"), NOW);
    await writeFile(path, `${marked("a")}mine`);
    assert.deepEqual(await writeGenerated(path, marked("b"), NOW), { path, outcome: "kept" });
    assert.deepEqual(await removeGenerated(path, false), { path, outcome: "kept" });
    const forced = { force: true, dryRun: false };
    const { outcome, backup = "" } = await writeGenerated(path, marked("b"), forced);
    assert.equal(outcome, "replaced");
    assert.equal(await readFile(backup, "utf8"), `${marked("a")}mine`);
    assert.deepEqual(await removeGenerated(path, false), { path, outcome: "removed" });
    assert.equal(await removeGenerated(path, false), undefined);
    assert.equal((await readdir(join(folder, "below"))).length, 1);
  });

  it("a link is the user's, and its file is never written through it", async () => {
    const { folder, path } = await newFile();
    await mkdir(join(folder, "below"));
    const target = join(folder, "dotfiles");
    await writeFile(target, marked("a"));
    await symlink(target, path);
    assert.equal((await writeGenerated(path, marked("b"), NOW)).outcome, "kept");
    const { backup = "" } = await writeGenerated(path, marked("b"), { force: true, dryRun: false });
    assert.equal(await readlink(backup), target);
    assert.equal(await readFile(target, "utf8"), marked("a"));
    assert.equal(await readFile(path, "utf8"), marked("b"));
  });
});
