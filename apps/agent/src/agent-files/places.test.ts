import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ensureFolder, findPlaces } from "./places.ts";

let root = "";
before(async () => {
  root = await mkdtemp(join(tmpdir(), "places-"));
});
after(() => rm(root, { recursive: true, force: true }));

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

describe("findPlaces", () => {
  it("puts state, data, cache and runtime in a folder of this program in the XDG ones [agent 3.3]", () => {
    const places = findPlaces({
      HOME: "/h",
      XDG_CONFIG_HOME: "/c",
      XDG_STATE_HOME: "/s",
      XDG_DATA_HOME: "/d",
      XDG_CACHE_HOME: "/k",
      XDG_RUNTIME_DIR: "/r",
    });
    const { userConfig, state, data, cache, runtime, tokenFile } = places;
    assert.deepEqual(
      [userConfig, state, data, cache, runtime, tokenFile],
      ["/c/daemon/config.yaml", "/s/daemon", "/d/daemon", "/k/daemon", "/r/daemon", "/h/.daemon-token"],
    );
  });

  it("without a runtime folder the sockets go to the state folder [agent 3.3]", () => {
    for (const unset of [undefined, "", "run"]) {
      const places = findPlaces({ HOME: "/h", ...(unset !== undefined && { XDG_RUNTIME_DIR: unset }) });
      assert.equal(places.runtime, "/h/.local/state/daemon");
    }
  });
});

describe("ensureFolder", () => {
  it("makes a folder with 0700 with every umask, and narrows one that is wider [agent 3.3]", async () => {
    const folder = join(root, "new/daemon");
    await ensureFolder(folder);
    assert.equal(await modeOf(folder), 0o700);
    await chmod(folder, 0o755);
    await ensureFolder(folder);
    assert.equal(await modeOf(folder), 0o700);
  });

  it("refuses a file and a link in its place", async () => {
    await writeFile(join(root, "file"), "");
    await mkdir(join(root, "elsewhere"), { mode: 0o755 });
    await symlink("elsewhere", join(root, "link"));
    for (const name of ["file", "link"]) {
      await assert.rejects(ensureFolder(join(root, name)), { code: "place_refused" });
    }
    assert.equal(await modeOf(join(root, "elsewhere")), 0o755, "what a link leads to is left alone");
  });
});
