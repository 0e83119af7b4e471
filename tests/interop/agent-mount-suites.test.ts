import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { filesystemSuites, loopSeconds, run, tempFolder, testSeed, type TempFolder } from "@devplat/testkit";
import { mountStand, type MountStand } from "./agent-mount-stand.ts";
import { POSIX_LIMITS } from "./agent-mount-tools/posix-limits.ts";

/*
 * Test suites of file systems on names that never become secrets: fsx, which compares random reads and writes of a file with its own
 * copy, and pjdfstest, which tests the system calls of POSIX. The machine has to have the users nobody and daemon, as Debian has.
 */

const TIMEOUT_MS = 480_000;
const FSX_CALLS = 1000;
const FSX_SHARE = 0.02;
const FSX_SETTINGS = `flen = 262144
[opsize]
max = 65536
[weights]
close_open = 1
invalidate = 1
read = 10
write = 10
mapread = 10
mapwrite = 10
truncate = 5
fsync = 1
fdatasync = 1
`;
const POSIX_SETTINGS = `[features]
utimensat = {}
utime_now = {}
[settings]
naptime = 0.01
allow_remount = false
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
`;
/** Tests that pass at least, so that a suite that does not run is noticed. */
const MIN_POSIX_PASSES = 100;

describe("test suites of file systems on the mount", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("agent-mount-suites");
    stand = await mountStand("agent-mount-suites", "read_write: true, layout: both");
    await writeFile(join(folder.path, "fsx.toml"), FSX_SETTINGS);
    await writeFile(join(folder.path, "posix.toml"), POSIX_SETTINGS);
  });
  after(async () => {
    await stand.remove();
    await folder.remove();
  });

  it("fsx: random reads, writes, maps and truncations give what was written [agent 38.24]", async () => {
    const end = performance.now() + loopSeconds(FSX_SHARE) * 1000;
    for (let seed = testSeed(); ; seed++) {
      const args = ["-f", join(folder.path, "fsx.toml"), "-N", String(FSX_CALLS), "-S", String(seed)];
      const { code, stdout, stderr } = await run(
        filesystemSuites().fsx,
        [...args, "-P", folder.path, stand.at("demo", ".fsx")],
        { cwd: folder.path },
      );
      assert.equal(code, 0, `seed ${seed}: ${stdout}${stderr}`.slice(-4000));
      if (performance.now() > end) break;
    }
    assert.equal(await stand.place.ok("secrets", "list", "demo/"), "registry\n");
  });

  it("pjdfstest: passes but for what the mount does not have [agent 38.24]", async () => {
    await mkdir(stand.at("posix"));
    const args = ["-c", join(folder.path, "posix.toml"), "-p", stand.at("posix")];
    const { stdout } = await run(filesystemSuites().pjdfstest, args, { cwd: folder.path });
    const text = stripVTControlCharacters(stdout);
    const results = [...text.matchAll(/^(\w+(?:::\w+)+) +(ok|FAILED|skipped)$/gm)];
    const named = (result: string): string[] =>
      results.filter(([, , each]) => each === result).map(([, name = ""]) => name);
    const failed = named("FAILED");
    const unexpected = failed.filter((name) => !POSIX_LIMITS.some(({ tests }) => tests.test(name)));
    assert.deepEqual(unexpected, []);
    for (const { tests, reason } of POSIX_LIMITS)
      assert.ok(
        failed.some((name) => tests.test(name)),
        `nothing fails any more because ${reason}`,
      );
    const passed = named("ok").length;
    assert.ok(passed >= MIN_POSIX_PASSES, `${passed} passed, ${failed.length} failed`);
  });
});
