import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, chown, link, mkdir, readdir, stat, symlink, truncate } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { TargetPolicy } from "./target/target-policy.ts";
import { workspace, yaml, type EngineOptions, type Workspace } from "./workspace.test-kit.ts";
import { RETRY_ALL } from "./retry-scope.ts";

let w: Workspace;
beforeEach(async () => {
  w = await workspace();
});
afterEach(() => w.remove());

describe("the places where a rule may write", () => {
  const assertRefused = async (path: string, reason: RegExp, options: EngineOptions = {}): Promise<void> => {
    await w.put("k", { token: "t" });
    const result = await w.cycle([yaml("a", "k", path)], options);
    assert.deepEqual(result.failed, ["a"]);
    assert.match((await w.errorOf("a")) ?? "", reason);
  };

  it("a symlinked target is followed and its file replaced, never the link [agent 12.2]", async () => {
    await w.put("k", { token: "t" });
    await w.file("dotfiles/f.yaml", "token: old\n");
    await symlink("dotfiles/f.yaml", join(w.home, "f.yaml"));
    await w.cycle([yaml("a", "k")]);
    assert.equal(await w.read("dotfiles/f.yaml"), "token: t\n");
    assert.deepEqual((await readdir(join(w.home, "dotfiles"))).toSorted(), ["f.yaml"]);
  });

  it("not outside of sync.allowed_targets, also not over a link [agent 4.15 12.5]", async () => {
    const outside = await workspace();
    try {
      await symlink(join(outside.home, "f.yaml"), join(w.home, "f.yaml"));
      await assertRefused("~/f.yaml", /it leads outside of sync.allowed_targets/);
    } finally {
      await outside.remove();
    }
  });

  it("not over a loop of links [agent 12.3]", async () => {
    await symlink("b", join(w.home, "a"));
    await symlink("a", join(w.home, "b"));
    await assertRefused("~/a", /more than 16 links/);
  });

  it("over 16 links, and not over one more [agent 12.4]", async () => {
    await w.put("k", { token: "t" });
    for (let i = 1; i <= 17; i++) {
      await symlink(i === 1 ? "end.yaml" : `link-${i - 1}`, join(w.home, `link-${i}`));
    }
    assert.deepEqual((await w.cycle([yaml("a", "k", "~/link-16")])).failed, []);
    assert.equal(await w.read("end.yaml"), "token: t\n");
    await assertRefused("~/link-17", /more than 16 links/);
  });

  it("not over a folder, not below a file, and not into a pipe [agent 12.11]", async () => {
    await mkdir(join(w.home, "is-a-folder"));
    await assertRefused("~/is-a-folder", /it is a folder/);
    await w.file("is-a-file", "x");
    await assertRefused("~/is-a-file/f.yaml", /is not a folder/);
    execFileSync("mkfifo", [join(w.home, "pipe")]);
    await assertRefused("~/pipe", /it is not a regular file/);
  });

  it("not over a file of more than 16 MiB, sparse ones too: all of it would be read", async () => {
    await w.file("large.yaml", "a: 1\n");
    await truncate(join(w.home, "large.yaml"), 10 * 1024 ** 3);
    await assertRefused("~/large.yaml", /it is larger than 16 MiB/);
  });

  it("not into our own folders, the token file, or what decides who gets in [agent 12.8]", async () => {
    await mkdir(join(w.home, ".ssh"), { mode: 0o700 });
    for (const path of [
      "~/.daemon-token",
      "~/.local/state/daemon/state.json",
      "~/.local/share/daemon/embedded.db",
      "~/.config/daemon/config.yaml",
      "~/.cache/daemon/x",
      "~/.ssh/authorized_keys",
      "~/.ssh/authorized_keys2",
      "~/.ssh/authorized_keys.d",
      "~/.ssh/rc",
      "~/.ssh/environment",
    ]) {
      await assertRefused(path, /no rule may write there/);
    }
  });

  it("not into the runtime folder or a configuration in use, of the system or named [agent 12.8]", async () => {
    const other = {
      ...w.places,
      runtime: join(w.home, "run/daemon"),
      systemConfigs: [join(w.home, "etc/c.yaml")],
    };
    const policy = new TargetPolicy(other, ["~"], [join(w.home, "named.yaml")]);
    for (const path of ["~/run/daemon/api.sock", "~/etc/c.yaml", "~/named.yaml"]) {
      await assert.rejects(policy.resolve(path), /no rule may write there/, path);
    }
  });

  it("with paths in the form of the given platform, also in sync.allowed_targets", async () => {
    const platform = { ...w.places.platform, native: (path: string) => path.replaceAll("|", "/") };
    await mkdir(join(w.home, "own"), { mode: 0o700 });
    const policy = new TargetPolicy({ ...w.places, platform }, ["~/own|given"], []);
    const { file } = await policy.resolve("~/own|given|f.yaml");
    assert.equal(file, join(w.home, "own/given/f.yaml"));
  });

  it("not into a file of another user, unless root writes it [agent 12.9]", async (t) => {
    if (process.geteuid?.() === 0) t.mock.method(process as { geteuid(): number }, "geteuid", () => 12_345);
    const policy = new TargetPolicy({ ...w.places, home: "/" }, ["/"], []);
    // Root's, in root's own folder.
    await assert.rejects(policy.resolve("/etc/passwd"), /it belongs to another user/);
  });

  it("not into such a file over a hard link [agent 12.8]", async () => {
    await w.file(".ssh/authorized_keys", "ssh-ed25519 AAAA\n");
    await link(join(w.home, ".ssh/authorized_keys"), join(w.home, "f.yaml"));
    await assertRefused("~/f.yaml", /no rule may write there/);
  });

  it("not into a folder that others can write, and it says what to do [agent 12.6]", async () => {
    await mkdir(join(w.home, "shared"));
    await chmod(join(w.home, "shared"), 0o777);
    await assertRefused("~/shared/f.yaml", /others can write its folder .*shared. Run 'chmod go-w /);
  });

  it("not below a folder that others can write, unless it is sticky [agent 12.6]", async () => {
    await mkdir(join(w.home, "open/own"), { recursive: true });
    await chmod(join(w.home, "open"), 0o777);
    await assertRefused("~/open/own/f.yaml", /others can write the folder above, .*open\. Run 'chmod go-w /);
    await chmod(join(w.home, "open"), 0o1777);
    const { engine } = await w.engine([
      { name: "a", key: "k", target: { path: "~/open/own/f.yaml", format: "yaml" } },
    ]);
    assert.deepEqual((await engine.cycle(new AbortController().signal, { retry: RETRY_ALL })).failed, []);
  });

  it("of remote_config not into what is run at login, also not over a link", async () => {
    await symlink(".bashrc", join(w.home, "harmless"));
    await mkdir(join(w.home, "bin"), { mode: 0o700 });
    await symlink("bin", join(w.home, "tools"));
    const policy = new TargetPolicy(w.places, ["~"], []);
    for (const path of [
      "~/.bashrc",
      "~/.profile",
      "~/.zshenv",
      "~/.config/autostart/x.desktop",
      "~/.config/systemd/user/x.service",
      "~/.config/fish/config.fish",
      "~/.local/bin/x",
      "~/bin/x",
      "~/harmless",
      "~/tools/x",
    ]) {
      await assert.rejects(policy.resolve(path, true), /must not write what is run at login/, path);
    }
    assert.ok((await policy.resolve("~/.bashrc")).file.endsWith("/.bashrc"), "a local rule may");
  });

  it("not into a folder of another user [agent 12.6]", async (context) => {
    if (process.geteuid?.() !== 0) return context.diagnostic("needs root to give a folder away");
    await mkdir(join(w.home, "theirs"));
    await chown(join(w.home, "theirs"), 65534, 65534);
    await assertRefused("~/theirs/f.yaml", /belongs to another user/);
  });

  it("keeps the owner of a file that root writes [agent 13.4]", async (context) => {
    if (process.geteuid?.() !== 0) return context.diagnostic("needs root to give a file away");
    await w.put("k", { token: "t" });
    await chown(await w.file("f.yaml", "token: old\n"), 65534, 65534);
    await w.cycle([yaml("a", "k")]);
    const found = await stat(join(w.home, "f.yaml"));
    assert.deepEqual([found.uid, found.gid], [65534, 65534]);
  });

  it("writes a hard-linked file in place, so that both names keep showing it [agent 13.5]", async () => {
    await w.put("k", { token: "t" });
    await w.file("f.yaml", "# long comment to be kept whole\ntoken: a-much-longer-old-value\n");
    await link(join(w.home, "f.yaml"), join(w.home, "g.yaml"));
    await w.cycle([yaml("a", "k")]);
    assert.equal(await w.read("g.yaml"), "# long comment to be kept whole\ntoken: t\n");
    const { state } = await w.engine([]);
    assert.equal(state.document.files[join(w.home, "f.yaml")]?.in_place, true);
    assert.deepEqual(await readdir(join(w.places.state, "in-place")), []);
  });
});
