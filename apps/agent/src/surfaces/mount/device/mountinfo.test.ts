import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { run } from "@devplat/testkit";
import { isOwnMount, mountAt, parseMountinfo, readMounts, type MountedFilesystem } from "./mountinfo.ts";

/** Writes a path as the kernel does. */
function escape(path: string): Buffer {
  const escaped = [...Buffer.from(path)].map((byte) =>
    " \t\n\\#".includes(String.fromCharCode(byte))
      ? `\\${byte.toString(8).padStart(3, "0")}`
      : String.fromCharCode(byte),
  );
  return Buffer.from(escaped.join(""), "latin1");
}

const line = (
  id: number,
  parent: number,
  mountpoint: string,
  optional = "",
  tail = "fuse.x src rw",
): Buffer =>
  Buffer.concat([
    Buffer.from(`${id} ${parent} 0:39 / `),
    escape(mountpoint),
    Buffer.from(` rw,nosuid ${optional}- ${tail}\n`),
  ]);

const path = fc.string({ unit: "grapheme", maxLength: 30 }).filter((each) => !each.includes("\0"));

describe("parseMountinfo", () => {
  it("gives back every path, also after optional fields", () => {
    fc.assert(
      fc.property(path, fc.constantFrom("", "shared:2 ", "shared:2 master:3 "), (text, optional) => {
        const [mount, ...more] = parseMountinfo(line(7, 5, `/${text}`, optional));
        assert.deepEqual(more, []);
        assert.equal(mount?.mountpoint, `/${text}`);
        assert.deepEqual([mount?.id, mount?.parentId, mount?.type, mount?.source], [7, 5, "fuse.x", "src"]);
        assert.deepEqual(mount?.options, ["rw", "nosuid"]);
      }),
    );
  });

  it("leaves out every other line", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const before = parseMountinfo(Buffer.concat([line(1, 2, "/a"), Buffer.from(bytes)]));
        assert.equal(before[0]?.mountpoint, "/a");
      }),
    );
    for (const text of ["", "1 2 0:39 / /a rw - ", "x 2 0:39 / /a rw - t s rw", "1 2 0:39 / /a rw t s rw"])
      assert.deepEqual(parseMountinfo(Buffer.from(text)), []);
  });

  it("reads this machine's mounts as findmnt does", async () => {
    const listed = await run("findmnt", ["--kernel", "--list", "--noheadings", "--output", "ID,FSTYPE"]);
    const expected = listed.stdout
      .trim()
      .split("\n")
      .map((each) => each.trim().split(/\s+/));
    const found = (await readMounts()).map(({ id, type }) => [String(id), type]);
    // Another test may mount at the same time.
    const system = (each: string[][]): string[][] =>
      each.filter(([, type = ""]) => !type.startsWith("fuse") && type !== "tmpfs");
    assert.deepEqual(system(found), system(expected));
  });
});

describe("mountAt", () => {
  it("finds the topmost of several mounts at one place, in any order of lines", () => {
    const lines = [line(10, 1, "/a"), line(11, 10, "/a"), line(12, 11, "/a"), line(13, 1, "/b")];
    fc.assert(
      fc.property(fc.shuffledSubarray(lines, { minLength: 4 }), (shuffled) => {
        assert.equal(mountAt(parseMountinfo(Buffer.concat(shuffled)), "/a")?.id, 12);
        assert.equal(mountAt(parseMountinfo(Buffer.concat(shuffled)), "/c"), undefined);
      }),
    );
  });
});

describe("isOwnMount", () => {
  const identity = { source: "daemon", subtype: "agent", uid: 1000 };
  const parsed = (tail: string): MountedFilesystem => parseMountinfo(line(1, 2, "/a", "", tail))[0]!;

  it("asks for type, source and user", () => {
    assert.equal(isOwnMount(parsed("fuse.agent daemon rw,user_id=1000,group_id=0"), identity), true);
    for (const tail of [
      "fuse daemon rw,user_id=1000",
      "fuse.sshfs daemon rw,user_id=1000",
      "fuse.agent other rw,user_id=1000",
      "fuse.agent daemon rw,user_id=10001",
      "fuse.agent daemon rw",
    ])
      assert.equal(isOwnMount(parsed(tail), identity), false, tail);
  });
});
