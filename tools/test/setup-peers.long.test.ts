import assert from "node:assert/strict";
import { chmod, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";

const SETUP = resolve(import.meta.dirname, "../setup-peers.sh");
const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "devplat-peers");
const NOBODY = 65534;

describe("tools/setup-peers.sh", () => {
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("setup-peers");
    await chmod(folder.path, 0o755);
  });
  after(() => folder.remove());

  /** The programs of this machine but for some, as the only folder of a PATH. */
  async function programsWithout(name: string, ...missing: readonly string[]): Promise<string> {
    const programs = join(folder.path, name);
    await mkdir(programs);
    const seen = new Set(missing);
    for (const from of (process.env["PATH"] ?? "").split(":")) {
      for (const program of await readdir(from).catch(() => [])) {
        if (seen.has(program)) continue;
        seen.add(program);
        await symlink(join(from, program), join(programs, program));
      }
    }
    return programs;
  }

  /** The builds of this machine but for those whose folder begins with `missing`. */
  async function buildsWithout(missing: string): Promise<string> {
    const home = join(folder.path, "cache");
    await mkdir(join(home, "devplat-peers"), { recursive: true });
    for (const name of await readdir(cache)) {
      if (!name.startsWith(missing)) await symlink(join(cache, name), join(home, "devplat-peers", name));
    }
    return home;
  }

  it("has nothing to do where all is there", async () => {
    const { code, stdout, stderr } = await run("sh", [SETUP], { env: process.env });
    assert.equal(stderr, "");
    assert.equal(stdout, "setup:peers: all there\n");
    assert.equal(code, 0);
  });

  it("says what it installs and how long that takes, and shows each step", async () => {
    const env = { ...process.env, XDG_CACHE_HOME: await buildsWithout("readers-") };
    const first = await run("sh", [SETUP], { env });
    assert.equal(first.code, 0, first.stderr);
    assert.match(
      first.stdout,
      /^The tests need programs that are not here yet: Python readers\. Installing them once takes about 1 min\.\n\[1\/1\] Python readers \(about 1 min\) \.\.\.\n +done in \d+ s\nsetup:peers: all there\n$/,
    );
    assert.equal((await run("sh", [SETUP], { env })).stdout, "setup:peers: all there\n");
  });

  it("a step that fails prints its output, removes partial files, and ends the setup", async () => {
    const path = await programsWithout("failing", "python3");
    const broken = join(path, "python3");
    // Right until it is asked for a virtual environment.
    await writeFile(broken, '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "no room for $3" >&2\nexit 1\n');
    await chmod(broken, 0o755);
    const home = join(folder.path, "cache-of-failing");
    await mkdir(join(home, "devplat-peers"), { recursive: true });
    for (const name of await readdir(cache)) {
      if (!/^(readers|python)-/.test(name))
        await symlink(join(cache, name), join(home, "devplat-peers", name));
    }
    const { code, stderr } = await run("sh", [SETUP], {
      env: { ...process.env, PATH: path, XDG_CACHE_HOME: home },
    });
    assert.equal(code, 1);
    assert.match(stderr, /^no room for .*readers-/);
    assert.match(stderr, /Python readers: not installed, see above/);
    assert.doesNotMatch(stderr, /clients/);
    const left = (await readdir(join(home, "devplat-peers"))).filter((name) =>
      /^(readers|python)-/.test(name),
    );
    assert.deepEqual(left, []);
  });

  it("where it may not install packages, one line says the command", async () => {
    const path = await programsWithout("no-sudo", "jq", "gh", "sudo");
    const sudo = join(path, "sudo");
    await writeFile(sudo, "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n");
    await chmod(sudo, 0o755);
    const env = { ...process.env, PATH: path, HOME: folder.path };
    const { code, stderr } = await run("setpriv", [`--reuid=${NOBODY}`, "--clear-groups", "sh", SETUP], {
      env,
    });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^setup:peers: missing here; run: sudo apt-get install -y --no-install-recommends jq gh.*\n$/,
    );
  });

  it("without apt-get, one line names the packages", async () => {
    const path = await programsWithout("no-apt", "jq", "apt-get");
    const { code, stderr } = await run("sh", [SETUP], { env: { ...process.env, PATH: path } });
    assert.equal(code, 1);
    assert.equal(
      stderr,
      "setup:peers: missing here: jq. Install them with this system's package manager, then run it again\n",
    );
  });
});
