import assert from "node:assert/strict";
import { chmod, mkdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import { makePrivate } from "./private-files.ts";

describe("files that a group could read", () => {
  it("become private, and others stay as they are", async () => {
    const folder = await tempFolder("private");
    const root = join(folder.path, "cache");
    const mode = async (path: string): Promise<string> =>
      ((await stat(join(root, path))).mode & 0o777).toString(8);
    const put = async (path: string, bits: number): Promise<void> => {
      await writeFile(join(root, path), "content");
      await chmod(join(root, path), bits);
    };
    await mkdir(join(root, "_responses/org/name"), { recursive: true });
    await mkdir(join(root, "org/name.git"), { recursive: true });
    await put("_responses/org/name/opened", 0o640);
    await put("_responses/org/name/private", 0o600);
    await put("org/name.git/config", 0o644);
    await put("outside", 0o640);
    await symlink(join(root, "outside"), join(root, "_responses/org/name/link"));
    await chmod(root, 0o710);
    // Without the folder of files that are handed over, nothing was opened by the service.
    await makePrivate(root);
    assert.equal(await mode(""), "710");
    await mkdir(join(root, "_accel"));
    await put("_accel/handed", 0o640);
    await chmod(join(root, "_accel"), 0o750);
    await makePrivate(root);
    assert.deepEqual(
      [
        await mode(""),
        await mode("_accel"),
        await mode("_accel/handed"),
        await mode("_responses/org/name/opened"),
      ],
      ["700", "700", "600", "600"],
    );
    assert.deepEqual(
      [await mode("_responses/org/name/private"), await mode("org/name.git/config"), await mode("outside")],
      ["600", "644", "640"],
    );
    // Permissions that an administrator sets later stay.
    await chmod(root, 0o750);
    await makePrivate(root);
    assert.equal(await mode(""), "750");
    await folder.remove();
  });

  it("are not looked for behind a symbolic link", async () => {
    const folder = await tempFolder("private");
    const [root, foreign] = [join(folder.path, "cache"), join(folder.path, "foreign")];
    await mkdir(root);
    await mkdir(foreign);
    await writeFile(join(foreign, "file"), "content");
    await chmod(join(foreign, "file"), 0o640);
    await chmod(foreign, 0o750);
    await symlink(foreign, join(root, "_accel"));
    await makePrivate(root);
    assert.equal((await stat(foreign)).mode & 0o777, 0o750);
    assert.equal((await stat(join(foreign, "file"))).mode & 0o777, 0o640);
    await folder.remove();
  });
});
