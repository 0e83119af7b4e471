import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { run, until } from "@devplat/testkit";
import { isMounted, mountStand, quick, type MountStand } from "./agent-mount-stand.ts";

const FIRST = '{\n  "user": "ada",\n  "password": "first"\n}\n';

/** Reads an open file again each time a line arrives. */
const READER = `
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print("open", flush=True)
for line in sys.stdin:
    os.lseek(fd, 0, os.SEEK_SET)
    print(len(os.read(fd, 4096)), flush=True)
`;

describe("agent mount and agent unmount", { timeout: 120_000 }, () => {
  let stand: MountStand;
  before(async () => {
    stand = await mountStand("agent-mount-again");
  });
  after(() => stand.remove());
  const cat = async (): Promise<string> => (await quick("cat", stand.at("demo/registry.json"))).stdout;
  const status = async (): Promise<{ state: string; mounted: boolean }> =>
    (JSON.parse(await stand.place.ok("status", "--json")) as { fuse: { state: string; mounted: boolean } })
      .fuse;

  it("are a pair, as often as a person wants [agent 38.16]", async () => {
    for (let round = 0; round < 3; round++) {
      assert.match(await stand.place.ok("unmount"), /^Unmounted \S+\/\.daemon\.\n$/);
      assert.equal(await isMounted(stand.mountpoint), false);
      assert.match(await stand.place.ok("mount"), /^Mounted \S+\/\.daemon\.\n$/);
      assert.equal(await cat(), FIRST);
    }
    // Twice is once.
    assert.match(await stand.place.ok("mount"), /^Mounted /);
    const { stdout } = await run("grep", ["-c", stand.mountpoint, "/proc/self/mountinfo"], {});
    assert.equal(stdout, "1\n");
  });

  it("print JSON, and the status says that a person has unmounted it", async () => {
    const { mountpoint } = stand;
    assert.deepEqual(JSON.parse(await stand.place.ok("unmount", "--json")), { mountpoint, unmounted: true });
    assert.deepEqual(JSON.parse(await stand.place.ok("unmount", "--json")), { mountpoint, unmounted: false });
    const { state, mounted } = await status();
    assert.deepEqual({ state, mounted }, { state: "unmounted", mounted: false });
    assert.match(
      await stand.place.ok("status"),
      /Mounted: {4}no \(unmounted by request; 'agent mount' mounts again\)/,
    );
    assert.match(
      (await stand.place.agent(["doctor"])).stdout,
      /mount: unmounted by request; 'agent mount' mounts again/,
    );
    // A reload does not mount.
    await stand.place.ok("reload");
    await until(() => /configuration/i.test(stand.agent.log()));
    assert.equal(await isMounted(mountpoint), false);
    assert.deepEqual(JSON.parse(await stand.place.ok("mount", "--json")), { mountpoint, mounted: true });
    assert.deepEqual(JSON.parse(await stand.place.ok("unmount", "--json", "--dry-run")), {
      mountpoint,
      unmounted: false,
    });
    assert.equal(await cat(), FIRST);
  });

  it("refuse open files; after a lazy one their readers go on, also after a mount", async () => {
    const reader = spawn("python3", ["-c", READER, stand.at("demo/registry.json")], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface({ input: reader.stdout })[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, "open");
    const refused = await stand.place.agent(["unmount"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /cannot unmount \S+: EBUSY\n.*run it with --lazy/is);
    assert.match(refused.stderr, new RegExp(`use it: python3\\S* \\(${reader.pid ?? 0}\\)\\. Or`));
    assert.equal(await cat(), FIRST);
    assert.equal((await status()).state, "mounted");
    assert.match(await stand.place.ok("unmount", "--lazy"), /^Unmounted /);
    assert.equal((await quick("ls", stand.mountpoint)).stdout, "");
    await stand.place.ok("mount");
    assert.equal(await cat(), FIRST);
    reader.stdin.write("\n");
    assert.equal((await lines.next()).value, String(FIRST.length));
    reader.stdin.end();
    await once(reader, "close");
    assert.equal(await cat(), FIRST);
  });

  it("notice an unmount by another program", async () => {
    const command = process.geteuid?.() === 0 ? ["umount"] : ["fusermount3", "-u"];
    const [program = "", ...args] = command;
    assert.equal((await run(program, [...args, stand.mountpoint], {})).code, 0);
    await until(async () => (await status()).state === "unmounted");
    await stand.place.ok("mount");
    assert.equal(await cat(), FIRST);
  });

  it("say why nothing can be mounted, and mount when that has gone", async () => {
    await stand.place.ok("unmount");
    await mkdir(stand.mountpoint, { recursive: true });
    await writeFile(stand.at("mine"), "");
    const refused = await stand.place.agent(["mount"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /cannot mount at \S+\/\.daemon: it is not empty\n.*Move its content/is);
    await rm(stand.at("mine"));
    await stand.place.ok("mount");
    assert.equal(await cat(), FIRST);
  });

  it("are routes of the API", async () => {
    const socket = join(stand.place.path, "daemon/api.sock");
    const curl = async (path: string, ...args: string[]): Promise<string> => {
      const words = ["-sS", "--unix-socket", socket, "-w", "\n%{http_code}", ...args];
      return (await run("curl", [...words, `http://localhost${path}`], {})).stdout;
    };
    const token = async (): Promise<string> => {
      const [body = ""] = (await curl("/api/v1/csrf")).split("\n");
      return `X-CSRF-Token: ${(JSON.parse(body) as { token: string }).token}`;
    };
    assert.match(await curl("/api/v1/unmount", "-X", "POST"), /csrf.*\n403$/s);
    const json = ["-H", "Content-Type: application/json"];
    for (const body of ["[]", '{"lazy": 1}', '{"path": "/"}'])
      assert.match(
        await curl("/api/v1/unmount", "-H", await token(), ...json, "--data", body),
        /"code":"bad_request".*\n400$/s,
      );
    assert.equal(await isMounted(stand.mountpoint), true);
    const done = await curl("/api/v1/unmount", "-H", await token(), ...json, "--data", '{"lazy": true}');
    assert.equal(done, '{"mounted":false}\n200');
    assert.equal(await isMounted(stand.mountpoint), false);
    assert.equal(await curl("/api/v1/mount", "-X", "POST", "-H", await token()), '{"mounted":true}\n200');
    assert.equal(await cat(), FIRST);
  });

  it("of a mount that is off, or without a daemon, say so", async () => {
    const { place } = stand;
    const config = await place.read(".config/daemon/config.yaml");
    await place.configure(config.replace("fuse: { enabled: true", "fuse: { enabled: false"));
    await place.ok("reload");
    await until(async () => !(await isMounted(stand.mountpoint)));
    const off = await place.agent(["mount"]);
    assert.equal(off.code, 1);
    assert.match(off.stderr, /The filesystem mount is off\n.*fuse\.enabled: true/is);
    assert.match(await place.ok("unmount"), /^Nothing is mounted at /);
    await place.configure(config);
    await stand.agent.stop();
    const none = await place.agent(["mount"]);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /Cannot reach the daemon/);
    assert.match(await place.ok("unmount"), /^Nothing is mounted at /);
    assert.match(
      (await place.agent(["mount", "--help"])).stdout,
      /Have the daemon make the filesystem mount/,
    );
    assert.equal((await place.agent(["mount", "--lazy"])).code, 1);
  });
});
