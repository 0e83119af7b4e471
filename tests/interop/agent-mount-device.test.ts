import assert from "node:assert/strict";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run } from "@devplat/testkit";
import { ACCOUNTS, HelloStand, ORDINARY, isRoot, runAs } from "./agent-mount/hello-stand.ts";

describe("a FUSE mount", () => {
  for (const account of ACCOUNTS) {
    it(`of ${account.name} is read by cat, ls, find, stat, and by nobody else`, async (context) => {
      const stand = await HelloStand.create(context, account);
      const program = stand.start();
      await program.event("mounted");
      const at = (name: string): string => join(stand.mountpoint, name);
      assert.equal((await stand.run("cat", at("hello.txt"))).stdout, "hello from the mount\n");
      assert.equal((await stand.run("cat", at("folder/a b"))).stdout, "a name with a space\n");
      assert.match((await stand.run("ls", "-ln", at("large"))).stdout, /^-r-{8} 1 \d+ \d+ 1048576 /);
      const shown = await stand.run("stat", "-c", "%s %u %a %Y", at("hello.txt"));
      assert.equal(shown.stdout, `21 ${account.uid} 400 1700000000\n`);
      const found = await stand.run("find", stand.mountpoint, "-type", "f");
      assert.equal(found.stdout.trimEnd().split("\n").length, 2003);
      assert.match((await stand.run("cat", at("none"))).stderr, /No such file/);
      const sum = await stand.run("sha256sum", at("large"));
      assert.match(sum.stdout, /^aca1cd027e979588d14b877b7b0cb8585ad9fec599eb45801992ee5382b3760f /);
      assert.notEqual((await stand.run("touch", at("new"))).code, 0);
      // The daemon's own user, or root, for a mount of another user.
      const other = isRoot ? ACCOUNTS.find((each) => each !== account) : undefined;
      if (other !== undefined) {
        const denied = await runAs(other, "cat", at("hello.txt"));
        assert.match(denied.stderr, /Permission denied/);
      }
      const [line = "", ...more] = await stand.mounts();
      assert.deepEqual(more, []);
      assert.match(line, / rw,nosuid,nodev,noexec,\S+ (?:.* )?- fuse\.hello devplat-test /);
      assert.match(line, new RegExp(`user_id=${account.uid},.*default_permissions`));
      assert.equal(await program.finish(), "");
    });

    it(`of ${account.name} that a killed server left is removed by the next one`, async (context) => {
      const stand = await HelloStand.create(context, account);
      for (const removed of [0, 1]) {
        const program = stand.start();
        assert.equal((await program.event("mounted"))["removed"], removed);
        assert.equal((await stand.run("cat", join(stand.mountpoint, "hello.txt"))).code, 0);
        await program.kill();
        assert.match((await stand.run("ls", stand.mountpoint)).stderr, /not connected/);
      }
    });
  }

  it("does not deadlock when a notification waits for a request", async (context) => {
    const stand = await HelloStand.create(context, ORDINARY);
    const program = stand.start();
    await program.event("mounted");
    const looking = stand.run("cat", join(stand.mountpoint, "held"));
    await program.event("held");
    program.command("notify");
    program.command("release");
    await program.event("notified");
    assert.equal((await looking).stdout, "held\n");
    await program.finish();
  });

  it("is refused at a folder with content, a link, a file, and another mount", async (context) => {
    const stand = await HelloStand.create(context, ORDINARY);
    const refusal = async (): Promise<string> => await stand.start().finish();
    await writeFile(stand.mountpoint, "");
    assert.match(await refusal(), /cannot mount at .*a mount, with a comma: it is not a folder/);
    await run("rm", [stand.mountpoint]);
    await symlink("/tmp", stand.mountpoint);
    assert.match(await refusal(), /it is a symbolic link/);
    await run("rm", [stand.mountpoint]);
    assert.equal((await stand.run("mkdir", stand.mountpoint)).code, 0);
    assert.equal((await stand.run("touch", join(stand.mountpoint, "mine"))).code, 0);
    assert.match(await refusal(), /it is not empty/);
    assert.deepEqual(await readdir(stand.mountpoint), ["mine"]);
    if (!isRoot) return;
    assert.equal((await run("mount", ["-t", "tmpfs", "foreign", stand.mountpoint])).code, 0);
    assert.match(await refusal(), /another filesystem is mounted there \(foreign, type tmpfs\)/);
    assert.equal((await stand.mounts()).length, 1);
  });

  if (isRoot) {
    it("that a killed server left is removed under a bind mount on top", async (context) => {
      const stand = await HelloStand.create(context, ORDINARY);
      const elsewhere = join(stand.folder, "elsewhere");
      await mkdir(elsewhere);
      const first = stand.start();
      await first.event("mounted");
      for (const [from, to] of [
        [stand.mountpoint, elsewhere],
        [elsewhere, stand.mountpoint],
      ] as const) {
        const bound = await run("mount", ["--bind", from, to]);
        assert.equal(bound.code, 0, bound.stderr);
      }
      await first.kill();
      const second = stand.start();
      const event = await second.event("mounted");
      assert.equal(event["removed"], 2);
      assert.deepEqual(event["remaining"], [elsewhere]);
      assert.equal((await stand.run("cat", join(stand.mountpoint, "hello.txt"))).code, 0);
      await second.finish();
    });
  }
});
