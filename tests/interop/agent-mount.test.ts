import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, until } from "@devplat/testkit";
import { Home, daemon } from "./agent-stand.ts";
import { isMounted, mountStand, python, quick, untilText, type MountStand } from "./agent-mount-stand.ts";

const TIMEOUT_MS = 480_000;
const FIRST = '{\n  "user": "ada",\n  "password": "first"\n}\n';

/** Reads an open file by read, pread and mmap, and the path again, each time a line arrives. */
const READER = `
import json, mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
shared = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
for line in sys.stdin:
    os.lseek(fd, 0, os.SEEK_SET)
    seen = [os.read(fd, 4096), os.pread(fd, 4096, 0), shared[:], open(sys.argv[1], 'rb').read()]
    print(json.dumps([each.decode() for each in seen]), flush=True)
`;

describe("the filesystem mount", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  before(async () => {
    stand = await mountStand("agent-mount", "layout: both, cache_ttl: 5m");
    await stand.store("demo/numbers", '{"large": 9007199254740993, "list": [1.10, true], "text": "a\\nb"}');
  });
  after(() => stand.remove());

  it("shows secrets as JSON of exact size, and fields as files [agent 38.1]", async () => {
    assert.equal(await readFile(stand.at("demo/registry.json"), "utf8"), FIRST);
    const { stdout } = await quick("stat", "-c", "%s %a %F", stand.at("demo/registry.json"));
    assert.equal(stdout, `${FIRST.length} 400 regular file\n`);
    assert.equal((await quick("stat", "-c", "%a %F", stand.at("demo"))).stdout, "500 directory\n");
    const read = await python(
      "import json,sys; print(json.load(open(sys.argv[1]))['large'])",
      stand.at("demo/numbers.json"),
    );
    assert.equal(read, "9007199254740993\n");
    assert.equal(await readFile(stand.at("demo/registry.d/password"), "utf8"), "first");
    assert.equal(await readFile(stand.at("demo/numbers.d/list"), "utf8"), "[1.10,true]");
    assert.equal(await readFile(stand.at("demo/numbers.d/text"), "utf8"), "a\nb");
    const { stdout: found } = await quick("find", stand.mountpoint, "-type", "f", "-printf", "%P\n");
    assert.deepEqual(found.trim().split("\n").toSorted(), [
      "demo/numbers.d/large",
      "demo/numbers.d/list",
      "demo/numbers.d/text",
      "demo/numbers.json",
      "demo/registry.d/password",
      "demo/registry.d/user",
      "demo/registry.json",
    ]);
  });

  it("tells the version of a secret in user.version", async () => {
    const version = await python(
      "import os,sys; print(os.listxattr(sys.argv[1]), os.getxattr(sys.argv[1], 'user.version'))",
      stand.at("demo/registry.json"),
    );
    assert.equal(version, "['user.version'] b'1'\n");
  });

  it("is read-only, and has no names that are not there", async () => {
    for (const command of [
      ["touch", stand.at("new.json")],
      ["rm", stand.at("demo/registry.json")],
      ["mkdir", stand.at("folder")],
      ["cat", stand.at("demo/absent.json")],
      ["cat", stand.at("a".repeat(255))],
      ["ls", stand.at("a".repeat(256))],
    ])
      assert.notEqual((await quick(...command)).code, 0, command.join(" "));
    assert.equal(await readFile(stand.at("demo/registry.json"), "utf8"), FIRST);
  });

  it("keeps the version of an open file, and shows others the new one [agent 38.2]", async () => {
    const path = stand.at("demo/registry.json");
    const reader = spawn("python3", ["-c", READER, path], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: reader.stdout })[Symbol.asyncIterator]();
    const ask = async (): Promise<string[]> => {
      reader.stdin.write("\n");
      const { value } = await lines.next();
      return JSON.parse(value ?? "[]") as string[];
    };
    assert.deepEqual(await ask(), [FIRST, FIRST, FIRST, FIRST]);
    await stand.place.ok("secrets", "put", "demo/registry", "user=ada", "password=second");
    const second = FIRST.replace("first", "second");
    // By the store's event, long before the time to live.
    await untilText(path, second);
    assert.deepEqual(await ask(), [FIRST, FIRST, FIRST, second]);
    assert.equal(await readFile(stand.at("demo/registry.d/password"), "utf8"), "second");
    reader.stdin.end();
    await once(reader, "close");
  });

  it("shows new secrets, and no longer those that were removed [agent 38.3]", async () => {
    await assert.rejects(stat(stand.at("late/key.json")), { code: "ENOENT" });
    await stand.place.ok("secrets", "put", "late/key", "a=b");
    await untilText(stand.at("late/key.json"), '{\n  "a": "b"\n}\n');
    await stand.forget("late/key");
    await until(
      async () => (await quick("ls", stand.at("late"))).code !== 0,
      () => "the folder is still there",
    );
  });

  it("notes who opened which file, never a value [agent 38.8]", async () => {
    await quick("cat", stand.at("demo/numbers.d/text"));
    // Opens of the test itself may be counted in a line that comes later.
    const isNoted = (line: string): boolean =>
      line.includes("demo/numbers.d/text") && line.includes('"program":"/usr/bin/cat"');
    await until(
      async () => stand.agent.log().split("\n").some(isNoted),
      () => stand.agent.log(),
    );
    assert.doesNotMatch(stand.agent.log(), /hunter|a\\nb|"second"/);
  });

  it("answers from memory while the daemon is stopped [agent 38.4]", async () => {
    await readFile(stand.at("demo/registry.json"));
    process.kill(stand.agent.pid ?? 0, "SIGSTOP");
    try {
      assert.equal((await quick("ls", stand.at("demo"))).code, 0);
      assert.match((await quick("cat", stand.at("demo/registry.json"))).stdout, /second/);
    } finally {
      process.kill(stand.agent.pid ?? 0, "SIGCONT");
    }
  });

  it("counts the names that no file can have", async () => {
    await stand.store(`odd/${"n".repeat(255)}`, "{}");
    await quick("ls", stand.at("odd"));
    await until(
      async () => (await stand.place.ok("status")).includes("Left out:   2 names"),
      () => stand.agent.log(),
    );
  });

  it("never fails while a secret is replaced again and again", async () => {
    const reader = `
import json, sys, time
end = time.monotonic() + 4
reads = 0
while time.monotonic() < end:
    fields = json.load(open(sys.argv[1]))
    assert fields["a"] == fields["b"], fields
    reads += 1
print(reads)
`;
    await stand.store("race/key", '{"a": "0", "b": "0"}');
    const readers = Array.from({ length: 8 }, () => python(reader, stand.at("race/key.json")));
    const all = Promise.all(readers);
    const end = performance.now() + 4000;
    for (let count = 1; performance.now() < end; count++) {
      const value = String(count).repeat(count % 2000);
      await stand.store("race/key", JSON.stringify({ a: value, b: value }));
    }
    for (const reads of await all) assert.ok(Number(reads) > 10, reads);
  });

  it("has its block in agent status", async () => {
    const text = await stand.place.ok("status");
    assert.match(
      text,
      /Filesystem\n {2}Mountpoint: \S+\/\.daemon\n {2}Access: {5}read-only\n {2}Cache TTL: {2}5m/,
    );
    assert.match(text, /Mounted: {4}yes/);
    const { fuse } = JSON.parse(await stand.place.ok("status", "--json")) as { fuse: { state: string } };
    assert.equal(fuse.state, "mounted");
  });
});

describe("the life of the filesystem mount", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  before(async () => {
    stand = await mountStand("agent-mount-life");
  });
  after(() => stand.remove());
  const path = (): string => stand.at("demo/registry.json");

  it("is made again after its server was killed, each time immediately [agent 38.5]", async () => {
    for (let kill = 0; kill < 6; kill++) {
      const { stdout } = await run("pgrep", ["-P", String(stand.agent.pid)], {});
      process.kill(Number(stdout.trim()), "SIGKILL");
      await until(
        async () => (await quick("cat", path())).stdout === FIRST,
        () => stand.agent.log(),
      );
    }
  });

  it("is removed after a kill of the daemon, and made by the next one [agent 38.5]", async () => {
    process.kill(-(stand.agent.pid ?? 0), 0);
    process.kill(stand.agent.pid ?? 0, "SIGKILL");
    await until(
      async () => !(await isMounted(stand.mountpoint)),
      () => "the mount is still there",
    );
    await stand.start();
    assert.equal((await quick("cat", path())).stdout, FIRST);
  });

  it("is not made again after a person has unmounted it", async () => {
    const doctor = await stand.place.agent(["doctor"]);
    assert.match(doctor.stdout, /\/dev\/fuse: can be opened/);
    assert.match(doctor.stdout, /mount: answers at \S+\/\.daemon/);
    assert.match(await stand.place.ok("unmount"), /^Unmounted \S+\/\.daemon\.\n$/);
    assert.match(await stand.place.ok("unmount"), /^Nothing is mounted at /);
    await until(
      async () => (await stand.place.ok("status")).includes("Mounted:    no"),
      () => stand.agent.log(),
    );
    await stand.agent.stop();
    await stand.start();
    assert.equal((await quick("cat", path())).stdout, FIRST);
  });

  it("is unmounted at the end, after 5 s also with an open file [agent 38.6]", async () => {
    const holder = spawn("sh", ["-c", 'exec < "$0"; echo open; exec sleep 60', path()], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    await once(holder.stdout, "data");
    await stand.agent.stop();
    assert.equal(await isMounted(stand.mountpoint), false);
    holder.kill("SIGKILL");
  });

  it("is refused over a folder with content, until a reload without it [agent 38.7]", async () => {
    await mkdir(stand.mountpoint, { recursive: true });
    await writeFile(stand.at("mine"), "");
    const { place } = stand;
    stand.agent = await daemon(place, async () =>
      (await place.agent(["status"])).stdout.includes("Problem:"),
    );
    assert.match(stand.agent.log(), /cannot mount at \S+\/\.daemon: it is not empty/);
    assert.match((await place.agent(["doctor"])).stdout, /mount: cannot mount at .* it is not empty/);
    await rm(stand.at("mine"));
    await place.ok("reload");
    await until(
      async () => (await quick("cat", path())).stdout === FIRST,
      () => stand.agent.log(),
    );
  });
});

describe("agent init --mount", { timeout: TIMEOUT_MS }, () => {
  it("leads to a secret that cat shows on the mount", async () => {
    const folder = await tempFolder("agent-mount-init");
    const place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
    const mountpoint = join(folder.path, ".daemon");
    const written = await place.ok("init", "--mount");
    assert.match(written, /second terminal.*read-only:\n {2}cat ~\/\.daemon\/example\.json\n/);
    const again = await place.agent(["init", "--mount"]);
    assert.match(again.stderr, /exists already\n.*'fuse: \{ enabled: true \}'/s);
    // Another daemon may have the usual port.
    const config = await place.read(".config/daemon/config.yaml");
    await place.configure(config.replace("127.0.0.1:8200", "127.0.0.1:0"));
    await place.ok("secrets", "put", "example", "token=s3cret", "user=me");
    const agent = await daemon(place, async () => await isMounted(mountpoint));
    try {
      const { stdout } = await quick("cat", join(mountpoint, "example.json"));
      assert.deepEqual(JSON.parse(stdout), { token: "s3cret", user: "me" });
    } finally {
      await agent.stop();
      await folder.remove();
    }
  });
});
