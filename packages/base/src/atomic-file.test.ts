import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { TEMPORARY_SUFFIX, removeLeftovers, temporaryPath, writeAtomically } from "./index.ts";

describe("writeAtomically", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "base-atomic-"));
  });
  after(() => rm(folder, { recursive: true }));

  it("writes the content with exactly the mode, under any umask", async () => {
    const umask = process.umask(0o077);
    const path = join(folder, "mode");
    await writeAtomically(path, "x", { mode: 0o644 });
    process.umask(umask);
    assert.equal((await stat(path)).mode & 0o777, 0o644);
    assert.equal(await readFile(path, "utf8"), "x");
  });

  it("sets mode 0600 by default, also when it replaces a file with a wider mode", async () => {
    const path = join(folder, "narrow");
    await writeFile(path, "old", { mode: 0o666 });
    await writeAtomically(path, "new");
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it("replaces a link, never the target of the link", async () => {
    const target = join(folder, "target");
    await writeFile(target, "untouched");
    await symlink(target, join(folder, "link"));
    await writeAtomically(join(folder, "link"), "new");
    assert.equal(await readFile(target, "utf8"), "untouched");
  });

  it("leaves no temporary file after a failure", async () => {
    const path = join(folder, "is-a-folder");
    await mkdir(path);
    await assert.rejects(writeAtomically(path, "x"));
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.endsWith(TEMPORARY_SUFFIX)),
      [],
    );
  });

  it("shows the complete old or new content when killed at any moment", async () => {
    const path = join(folder, "killed");
    const contents = ["a".repeat(200_000), "b".repeat(300_000)];
    await writeAtomically(path, contents[0] ?? "");
    const writer = `
      const { writeAtomically } = await import(${JSON.stringify(new URL("./index.ts", import.meta.url).href)});
      process.send("ready");
      for (let i = 0; ; i++) await writeAtomically(${JSON.stringify(path)}, (i % 2 ? "a" : "b").repeat(i % 2 ? 200000 : 300000));
    `;
    const script = join(folder, "writer.mjs");
    await writeFile(script, writer);
    for (let round = 0; round < 6; round++) {
      const child = fork(script, { stdio: "ignore", execArgv: ["--disable-warning=ExperimentalWarning"] });
      await new Promise((ready) => child.once("message", ready));
      await new Promise((wait) => setTimeout(wait, 5 + Math.random() * 40));
      const closed = new Promise((done) => child.once("close", done));
      child.kill("SIGKILL");
      await closed;
      const seen = await readFile(path, "utf8");
      assert.ok(contents.includes(seen), `round ${round}: ${seen.length} bytes, neither old nor new`);
    }
    await removeLeftovers([path]);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.startsWith(".killed.")),
      [],
    );
  });
});

describe("removeLeftovers", () => {
  it("removes temporary files of the given files, and nothing else", async () => {
    const folder = await mkdtemp(join(tmpdir(), "base-leftovers-"));
    try {
      const [file, longer] = [join(folder, "f"), join(folder, "f.service")];
      const others = [".f.xyz.aside~", ".g.0123456789ab.aside~", "f", ".f.0123456789ab"];
      for (const name of others) await writeFile(join(folder, name), "x");
      for (const path of [temporaryPath(file), temporaryPath(longer)]) await writeFile(path, "x");
      await removeLeftovers([file, longer, join(folder, "none", "f")]);
      assert.deepEqual((await readdir(folder)).toSorted(), others.toSorted());
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
