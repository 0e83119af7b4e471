import assert from "node:assert/strict";
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run, until } from "@devplat/testkit";
import { isMounted } from "./agent-mount-stand.ts";
import { ORDINARY, isRoot } from "./agent-mount/hello-stand.ts";
import { UserStand, asStranger } from "./agent-mount/user-stand.ts";

const TIMEOUT_MS = 120_000;
const SHOWN = '{\n  "user": "ada",\n  "password": "first"\n}\n';

/** Opens a socket as systemd does, and becomes the command. */
const ACTIVATE = `
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o600)
if os.geteuid() == 0: os.chown(sys.argv[1], int(sys.argv[2]), int(sys.argv[2]))
s.listen()
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="mount")
os.execv(sys.argv[3], sys.argv[3:])
`;

describe("a daemon that gets no new privileges", { timeout: TIMEOUT_MS }, () => {
  it("says that it needs the mount helper, and mounts when there is one [agent 38.17]", async (context) => {
    const stand = await UserStand.create(context);
    const { hardened } = stand;
    const status = async (): Promise<string> => (await stand.home.agent(["status"])).stdout;
    const agent = await stand.start(context, hardened, async () => (await status()).includes("Problem:"));
    assert.match(
      await status(),
      /Problem: {4}cannot mount or unmount \S+: this process may not get new privileges, so it cannot run fusermount3, and the mount helper does not answer/,
    );
    assert.match(agent.log(), /Start daemon-mount\.socket/);
    const doctor = await stand.home.agent(["doctor"]);
    assert.match(doctor.stdout, /mount: .*may not get new privileges/);
    const helper = await stand.startHelper(context);
    await stand.home.ok("mount");
    assert.equal(await stand.read(), SHOWN);
    assert.match((await stand.home.agent(["doctor"])).stdout, /mount helper: answers at \S+mount\.sock/);

    assert.match(await stand.home.ok("unmount"), /^Unmounted /);
    await stand.home.ok("mount");
    assert.equal(await stand.read(), SHOWN);
    // The command has no more privileges than the daemon.
    assert.match(
      await hardened.agent(["unmount"]).then(({ stdout, stderr }) => stdout + stderr),
      /^Unmounted /,
    );
    await stand.home.ok("mount");

    // The daemon's own children have died too, so the next daemon finds a stale mount.
    const { stdout } = await run("pgrep", ["-P", String(agent.pid)], {});
    process.kill(agent.pid ?? 0, "SIGSTOP");
    for (const pid of stdout.trim().split("\n")) process.kill(Number(pid), "SIGKILL");
    process.kill(agent.pid ?? 0, "SIGKILL");
    const next = await stand.start(context, hardened, async () => (await stand.read()) === SHOWN);
    assert.match(next.log(), /a mount of an earlier run was removed/);
    assert.equal(await next.stop(), 0);
    assert.equal(await isMounted(stand.mountpoint), false);
    assert.match(helper.log, /mount helper has done a request/);
  });

  it("is told when the mount helper is hardened too", async (context) => {
    const stand = await UserStand.create(context);
    await stand.startHelper(context, "setpriv", "--no-new-privs");
    const agent = await stand.start(context, stand.hardened, async () =>
      (await stand.home.agent(["status"])).stdout.includes("Problem:"),
    );
    assert.match(
      agent.log(),
      /cannot mount or unmount \S+: fusermount3: mount failed: Operation not permitted/,
    );
  });
});

describe("the mount helper", { timeout: TIMEOUT_MS }, () => {
  const ok = { maxReadBytes: 131_072 };

  it("refuses what it does not understand", async (context) => {
    const stand = await UserStand.create(context);
    await stand.startHelper(context);
    const mount = { action: "mount", path: stand.mountpoint };
    for (const request of [
      "\n",
      "{\n",
      "[]\n",
      "null\n",
      "x".repeat(10_000),
      { action: "format", path: "/" },
      { ...mount, ...ok, path: "relative" },
      { ...mount, ...ok, path: `${stand.mountpoint}\0` },
      { ...mount, ...ok, path: 7 },
      { ...mount, maxReadBytes: "131072,allow_other" },
      { ...mount, maxReadBytes: -1 },
      { ...mount, maxReadBytes: 1e300 },
      { action: "unmount", path: stand.mountpoint, lazy: "yes" },
    ])
      assert.equal(
        await stand.ask(request),
        "the mount helper does not understand the request",
        JSON.stringify(request),
      );
    assert.equal(await isMounted(stand.mountpoint), false);
  });

  it("closes a connection that never sends a line, and serves others", async (context) => {
    const stand = await UserStand.create(context);
    await stand.startHelper(context);
    const silent = stand.ask("no end of line");
    assert.match(await stand.ask("[]\n"), /does not understand/);
    assert.match(await silent, /^(ECONNRESET|EPIPE)?$/);
  });

  it("mounts and unmounts only at the configured folder", async (context) => {
    const stand = await UserStand.create(context);
    await stand.startHelper(context);
    const elsewhere = join(stand.home.path, "elsewhere");
    await stand.run("mkdir", elsewhere);
    for (const path of [elsewhere, stand.home.path, "/", `${stand.home.path}/x/../.daemon`])
      for (const request of [
        { action: "mount", path, ...ok },
        { action: "unmount", path, lazy: true },
      ])
        assert.match(await stand.ask(request), /^the mount helper mounts only at \S+\/\.daemon\./, path);
    assert.match(
      await stand.ask({ action: "unmount", path: stand.mountpoint, lazy: true }),
      /^the daemon has no mount at /,
    );
    // A link in its place.
    await stand.run("ln", "-s", elsewhere, stand.mountpoint);
    assert.match(
      await stand.ask({ action: "mount", path: stand.mountpoint, ...ok }),
      /it is a symbolic link/,
    );
    await stand.run("rm", stand.mountpoint);
    await stand.run("mkdir", stand.mountpoint);
    await stand.run("touch", join(stand.mountpoint, "mine"));
    assert.match(await stand.ask({ action: "mount", path: stand.mountpoint, ...ok }), /it is not empty/);
    assert.doesNotMatch(await readFile("/proc/self/mountinfo", "utf8"), new RegExp(stand.outside));
    // It reads the configuration for each request.
    const other = join(stand.home.path, "other");
    await stand.configure(`store: { driver: embedded }\nfuse: { enabled: true, mountpoint: ${other} }\n`);
    assert.equal(await stand.ask({ action: "mount", path: other, ...ok }), "ok");
    assert.equal(await stand.ask({ action: "unmount", path: other, lazy: true }), "ok");
  });

  it("leaves nothing behind where a folder above is swapped for a link", async (context) => {
    const stand = await UserStand.create(context);
    const at = (name: string): string => join(stand.home.path, name);
    const path = join(at("above"), "mount");
    await stand.run("mkdir", "-p", path, join(at("trap"), "mount"));
    await stand.configure(`store: { driver: embedded }\nfuse: { enabled: true, mountpoint: ${path} }\n`);
    await stand.startHelper(context);
    const swap = `
      const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
      const [, above, trap, real] = process.argv;
      for (const end = performance.now() + 5000; performance.now() < end; ) {
        renameSync(above, real);
        symlinkSync(trap, above);
        unlinkSync(above);
        renameSync(real, above);
      }`;
    const swapping = stand.run(process.execPath, "-e", swap, at("above"), at("trap"), at("real"));
    const answers = new Set<string>();
    const end = performance.now() + 4500;
    while (performance.now() < end) {
      answers.add((await stand.ask({ action: "mount", path, ...ok })).slice(0, 40));
      await stand.ask({ action: "unmount", path, lazy: true });
    }
    assert.equal((await swapping).stderr, "");
    await stand.ask({ action: "unmount", path, lazy: true });
    const left = (await readFile("/proc/self/mountinfo", "utf8"))
      .split("\n")
      .filter((line) => line.includes(stand.outside) && !line.includes(` ${path} `));
    assert.deepEqual(left, [], [...answers].join("\n"));
  });

  if (isRoot)
    it("serves no other user, not even root", async (context) => {
      const stand = await UserStand.create(context);
      const helper = await stand.startHelper(context);
      const request = { action: "mount", path: stand.mountpoint, ...ok };
      assert.match(await stand.ask(request, asStranger), /EACCES/);
      // With open folders and an open socket the kernel's word on the user still counts.
      for (const folder of [stand.home.path, join(stand.home.path, "run"), stand.runtime])
        await chmod(folder, 0o755);
      await chmod(join(stand.runtime, "mount.sock"), 0o666);
      for (const words of [[...asStranger], ["env"]])
        assert.match(await stand.ask(request, words), /^(ECONNRESET|EPIPE)?$/, words.join(" "));
      assert.match(helper.log, /mount helper refused a program of another user/);
      assert.equal(await isMounted(stand.mountpoint), false);
    });

  it("takes the socket of a supervisor, and ends when it is idle", async (context) => {
    const stand = await UserStand.create(context);
    await stand.run("mkdir", "-p", "-m", "700", stand.runtime);
    const socket = join(stand.runtime, "mount.sock");
    const helper = await stand.startHelper(context, "python3", "-c", ACTIVATE, socket, String(ORDINARY.uid));
    assert.match(helper.log, /"activated":true/);
    assert.equal(await stand.ask({ action: "mount", path: stand.mountpoint, ...ok }), "ok");
    assert.equal(await stand.ask({ action: "unmount", path: stand.mountpoint, lazy: true }), "ok");
    await until(
      () => helper.exitCode !== null,
      () => helper.log,
    );
    assert.equal(helper.exitCode, 0, helper.log);
    assert.equal((await stand.run("test", "-S", socket)).code, 0, "the socket is the supervisor's");
  });

  it("has its units in the guide, with the names that it looks for", async (context) => {
    const stand = await UserStand.create(context);
    const guide = await readFile(join(import.meta.dirname, "../../docs/agent/mount.md"), "utf8");
    const place = stand.runtime.slice(join(stand.home.path, "run").length);
    assert.ok(guide.includes(`ListenStream=%t${place}/mount.sock\n`));
    assert.match(guide, /SocketMode=0600\n {4}DirectoryMode=0700\n {4}FileDescriptorName=mount\n/);
    assert.match(guide, /ExecStart=\S+agent mount-helper\n/);
  });

  it("is in no list of commands", async (context) => {
    const stand = await UserStand.create(context);
    assert.doesNotMatch(await stand.home.ok("help"), /mount-helper/);
    assert.doesNotMatch(await stand.home.ok("completion", "bash"), /mount-helper/);
  });
});
