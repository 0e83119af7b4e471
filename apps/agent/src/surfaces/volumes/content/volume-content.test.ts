import assert from "node:assert/strict";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readFile,
  readdir,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { run } from "@devplat/testkit";
import { VolumeContent, type ContentAccess } from "./volume-content.ts";
import { VolumesFolder } from "./volumes-folder.ts";

const ACCESS: ContentAccess = { mode: 0o400, uid: undefined, gid: undefined };

let base: string;
let content: VolumeContent;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "volume-content-"));
  await mkdir(join(base, "volumes"));
  await mkdir(join(base, "outside"));
  await writeFile(join(base, "outside/precious"), "kept");
  content = new VolumeContent(join(base, "volumes"), "app");
});
afterEach(() => rm(base, { recursive: true, force: true }));

function write(files: Readonly<Record<string, string>>, access = ACCESS): Promise<void> {
  return content.write(
    new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])),
    access,
  );
}
const at = (path: string): string => join(content.path, path);
const text = (path: string): Promise<string> => readFile(at(path), "utf8");

/** Everything below `outside`, which no volume may change. */
async function outside(): Promise<string[]> {
  assert.equal(await readFile(join(base, "outside/precious"), "utf8"), "kept");
  return await readdir(join(base, "outside"));
}

describe("the content of a volume", () => {
  it("has links into ..data, and a new version for each write", async () => {
    await write({ "a.json": "1", "demo/b.json": "2" });
    assert.deepEqual([await text("a.json"), await text("demo/b.json")], ["1", "2"]);
    assert.deepEqual(
      [await readlink(at("a.json")), await readlink(at("demo"))],
      ["..data/a.json", "..data/demo"],
    );
    const first = await readlink(at("..data"));
    await write({ "a.json": "3", "demo/b.json": "4" });
    const second = await readlink(at("..data"));
    assert.notEqual(second, first);
    assert.deepEqual(
      (await readdir(content.path)).toSorted(),
      ["..data", "a.json", "demo", second].toSorted(),
    );
    assert.deepEqual([await text("a.json"), await text("demo/b.json")], ["3", "4"]);
  });

  it("keeps the old version whole for a reader that has it open", async () => {
    await write({ "a.json": "old" });
    await using reader = await open(at("a.json"));
    await write({ "a.json": "new" });
    assert.equal(await reader.readFile("utf8"), "old");
    assert.equal(await text("a.json"), "new");
  });

  it("loses the names that are no longer there, and keeps a container's own files", async () => {
    await write({ "a.json": "1", "demo/b.json": "2" });
    await writeFile(at("own"), "of the container");
    await write({ "a.json": "1" });
    assert.equal(await stat(at("demo")).catch(() => undefined), undefined);
    assert.equal(await text("own"), "of the container");
  });

  it("has the bits of mode, and folders that the same users can enter", async () => {
    const before = process.umask(0o077);
    try {
      for (const [mode, folder] of [
        [0o400, 0o700],
        [0o440, 0o750],
        [0o444, 0o755],
      ] as const) {
        await write({ "demo/b.json": "2" }, { ...ACCESS, mode });
        assert.equal((await stat(at("demo/b.json"))).mode & 0o7777, mode);
        for (const path of [".", "..data", "demo"])
          assert.equal((await stat(at(path))).mode & 0o7777, folder, path);
      }
    } finally {
      process.umask(before);
    }
  });

  it("belongs to uid and gid, with folders that they cannot change", async () => {
    await write({ "demo/b.json": "2" }, { mode: 0o400, uid: 4711, gid: 4712 });
    for (const path of [".", "..data/.", "demo/b.json"]) {
      const found = await stat(at(path));
      assert.deepEqual([found.uid, found.gid], [4711, 4712], path);
    }
    assert.equal((await stat(at("demo"))).mode & 0o7777, 0o500);
  });

  it("is wiped with its folder and all that a container has put there", async () => {
    await write({ "a.json": "1", "demo/b.json": "2" });
    await mkdir(at("deep/er"), { recursive: true });
    await writeFile(at("deep/er/file"), "x");
    await symlink(join(base, "outside"), at("deep/link"));
    await run("mkfifo", [at("pipe")]);
    await content.wipe();
    assert.deepEqual(await readdir(join(base, "volumes")), []);
    assert.deepEqual(await outside(), ["precious"]);
    await content.wipe();
  });

  it("is wiped also where a container has nested 2,000 folders", async () => {
    await write({ "a.json": "1" });
    // Paths of this depth are longer than a system call takes: the shell goes down step by step.
    const nest = `cd "${content.path}"; i=0; while [ $i -lt 2000 ]; do mkdir d && cd -P d || exit 1; i=$((i+1)); done; : > file`;
    assert.equal((await run("sh", ["-c", nest])).code, 0);
    await content.wipe();
    assert.deepEqual(await readdir(join(base, "volumes")), []);
  });
});

describe("a container that changes its volume", () => {
  const attacks: [string, () => Promise<void>][] = [
    [
      "..data leads out",
      async () => {
        await rm(at("..data"));
        await symlink(join(base, "outside"), at("..data"));
      },
    ],
    [
      "..data is a folder",
      async () => {
        await rm(at("..data"));
        await mkdir(at("..data/inner"), { recursive: true });
      },
    ],
    [
      "a name leads out",
      async () => {
        await rm(at("demo"));
        await symlink(join(base, "outside"), at("demo"));
      },
    ],
    [
      "a name is a folder",
      async () => {
        await rm(at("demo"));
        await mkdir(at("demo/inner"), { recursive: true });
      },
    ],
    [
      "the version leads out",
      async () => {
        const version = await readlink(at("..data"));
        await rm(at("moved"), { recursive: true, force: true });
        await rename(at(version), at("moved"));
        await symlink(join(base, "outside"), at(version));
      },
    ],
  ];
  for (const [name, attack] of attacks) {
    it(`does not lead the next write or the wiping out: ${name}`, async () => {
      await write({ "a.json": "1", "demo/b.json": "2" });
      await attack();
      await write({ "a.json": "3", "demo/b.json": "4" });
      assert.deepEqual([await text("a.json"), await text("demo/b.json")], ["3", "4"]);
      assert.deepEqual(await outside(), ["precious"]);
      await attack();
      await content.wipe();
      assert.deepEqual(await readdir(join(base, "volumes")), []);
      assert.deepEqual(await outside(), ["precious"]);
    });
  }

  it("is refused where the volume's own folder was swapped for a link", async () => {
    await write({ "a.json": "1" });
    await rename(content.path, `${content.path}-moved`);
    await symlink(join(base, "outside"), content.path);
    await assert.rejects(write({ "a.json": "3" }), { code: "content_unwritable" });
    assert.equal(await content.isWritten(), false);
    await content.wipe();
    assert.deepEqual(await outside(), ["precious"]);
  });

  it("is noticed when ..data is gone", async () => {
    await write({ "a.json": "1" });
    assert.equal(await content.isWritten(), true);
    await rm(at("..data"));
    assert.equal(await content.isWritten(), false);
  });
});

describe("a full file system", () => {
  it("keeps the last content, and names the reason", async () => {
    const folder = join(base, "small");
    await mkdir(folder);
    assert.equal((await run("mount", ["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", folder])).code, 0);
    try {
      content = new VolumeContent(folder, "app");
      await write({ "a.json": "old" });
      await assert.rejects(write({ "a.json": "x".repeat(100_000) }), {
        code: "content_unwritable",
        message: /cannot be written: ENOSPC/,
        hint: "The file system of docker.volume_dir is full.",
      });
      assert.equal(await text("a.json"), "old");
      assert.equal((await readdir(content.path)).length, 3);
    } finally {
      await run("umount", [folder]);
    }
  });
});

describe("the folder of all volumes", () => {
  it("belongs to the daemon, and keeps only the content of mounted volumes", async () => {
    const folder = new VolumesFolder(join(base, "new"));
    await folder.prepare();
    assert.equal((await lstat(folder.path)).mode & 0o777, 0o700);
    for (const name of ["mounted", "left"])
      await folder.content(name).write(new Map([["a", Buffer.from("1")]]), ACCESS);
    await folder.prepare();
    assert.deepEqual([...(await folder.wipeExcept(new Set(["mounted"])))], []);
    assert.equal(await folder.content("mounted").isWritten(), true);
    assert.equal(await lstat(join(folder.path, "left")).catch(() => undefined), undefined);
  });

  it("is refused, and nothing is removed, if it holds other files", async () => {
    await chmod(join(base, "outside"), 0o755);
    await assert.rejects(new VolumesFolder(join(base, "outside")).prepare(), {
      code: "place_refused",
      message: /it is not empty/,
    });
    assert.equal((await lstat(join(base, "outside"))).mode & 0o777, 0o755);
    assert.deepEqual(await outside(), ["precious"]);
  });
});
