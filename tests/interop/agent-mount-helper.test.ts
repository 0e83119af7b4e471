import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { AGENT_LAUNCHER, run, tempFolder, until } from "@devplat/testkit";
import { isMounted } from "./agent-mount-stand.ts";
import { ORDINARY, isRoot } from "./agent-mount/hello-stand.ts";
import { UserStand, asStranger, killAll } from "./agent-mount/user-stand.ts";
import { Home } from "./agent-stand.ts";

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

/** Swaps a folder for a link and back, until a file exists. */
const SWAP = `
const { existsSync, renameSync, symlinkSync, unlinkSync } = require("node:fs");
const [, above, trap, real, end] = process.argv;
for (const late = performance.now() + 60_000; !existsSync(end) && performance.now() < late; ) {
  renameSync(above, real);
  symlinkSync(trap, above);
  unlinkSync(above);
  renameSync(real, above);
}`;
const SWAPPED_MOUNTS = 150;
const ANALYZE = "/usr/bin/systemd-analyze";
const UNITS = join(import.meta.dirname, "../../deploy/systemd/user");
const READ_SIZE = { maxReadBytes: 131_072 };

/** Reads the log, as a command costs half a second of CPU. */
const hasFailed = async (log: string): Promise<boolean> => /cannot mount (?:or unmount )?\S+:/.test(log);

describe("a daemon that gets no new privileges", { timeout: TIMEOUT_MS, concurrency: true }, () => {
  it("says that it needs the mount helper, and mounts when there is one [agent 38.17]", async (context) => {
    const stand = await UserStand.create(context);
    const { hardened } = stand;
    const agent = await stand.start(context, hardened, hasFailed);
    assert.match(
      (await stand.home.agent(["status"])).stdout,
      /Problem: {4}cannot mount or unmount \S+: this process may not get new privileges, so it cannot run fusermount3, and the mount helper does not answer/,
    );
    assert.match(agent.log(), /Start agent-mount\.socket/);
    const doctor = await stand.home.agent(["doctor"]);
    assert.match(doctor.stdout, /mount: .*may not get new privileges/);
    const helper = await stand.startHelper(context);
    await stand.home.ok("mount");
    assert.equal(await stand.read(), SHOWN);
    assert.match((await stand.home.agent(["doctor"])).stdout, /mount helper: answers at \S+mount\.sock/);

    // The command has no more privileges than the daemon.
    assert.match(
      await hardened.agent(["unmount"]).then(({ stdout, stderr }) => stdout + stderr),
      /^Unmounted /,
    );
    assert.equal(await isMounted(stand.mountpoint), false);
    await stand.home.ok("mount");
    assert.equal(await stand.read(), SHOWN);

    // The daemon's own children have died too, so the next daemon finds a stale mount.
    await killAll(agent);
    const next = await stand.start(context, hardened, async () => (await stand.read()) === SHOWN);
    assert.match(next.log(), /a mount of an earlier run was removed/);
    assert.equal(await next.stop(), 0);
    assert.equal(await isMounted(stand.mountpoint), false);
    assert.match(helper.log, /mount helper has done a request/);
  });

  it("is told when the mount helper is hardened too", async (context) => {
    const stand = await UserStand.create(context);
    await stand.startHelper(context, "setpriv", "--no-new-privs");
    const agent = await stand.start(context, stand.hardened, hasFailed);
    assert.match(agent.log(), /cannot mount \S+: fusermount3: mount failed: Operation not permitted/);
  });

  it("has a mount helper that ends when it is idle, if a supervisor opens its socket", async (context) => {
    const stand = await UserStand.withoutSecret(context);
    await stand.run("mkdir", "-p", "-m", "700", stand.runtime);
    const socket = join(stand.runtime, "mount.sock");
    const helper = await stand.startHelper(context, "python3", "-c", ACTIVATE, socket, String(ORDINARY.uid));
    assert.match(helper.log, /"activated":true/);
    const path = stand.mountpoint;
    assert.equal(await stand.ask({ action: "mount", path, ...READ_SIZE }), "ok");
    assert.equal(await stand.ask({ action: "unmount", path, lazy: true }), "ok");
    await until(
      () => helper.exitCode !== null,
      () => helper.log,
    );
    assert.equal(helper.exitCode, 0, helper.log);
    assert.equal((await stand.run("test", "-S", socket)).code, 0, "the socket is the supervisor's");
  });

  it("has units of the helper with the names that it looks for", async (context) => {
    const socket = await readFile(join(UNITS, "agent-mount.socket"), "utf8");
    assert.match(socket, /^ListenStream=%t\/daemon\/mount\.sock$/m);
    assert.match(socket, /^FileDescriptorName=mount\nSocketMode=0600\nDirectoryMode=0700$/m);
    const service = await readFile(join(UNITS, "agent-mount.service"), "utf8");
    assert.match(service, /^ExecStart=\S+agent mount-helper$/m);
    // Not every host of the tests has systemd.
    if (existsSync(ANALYZE)) assert.equal(await verified(context), "");
  });

  it("has a mount helper that is in no list of commands", async (context) => {
    const folder = await tempFolder("helper-help");
    context.after(() => folder.remove());
    const home = new Home(folder.path);
    assert.doesNotMatch(await home.ok("help"), /mount-helper/);
    assert.doesNotMatch(await home.ok("completion", "bash"), /mount-helper/);
  });

  it("has a mount helper that serves nothing else, and nobody else", async (context) => {
    const stand = await UserStand.withoutSecret(context);
    const helper = await stand.startHelper(context);
    const placesThenLinks = async (): Promise<void> => {
      await context.test("only the configured folder", () => assertOnlyItsFolder(stand));
      await context.test("nothing is left where a folder above is swapped for a link", () =>
        assertNothingLeft(stand),
      );
    };
    await Promise.all([
      context.test("requests that it does not understand", () => assertRefusesUnknown(stand)),
      context.test("a connection that never sends a line", () => assertServesOthers(stand)),
      ...(isRoot ? [context.test("another user, also root", () => assertServesNoOther(stand, helper))] : []),
      placesThenLinks(),
    ]);
  });
});

async function assertRefusesUnknown(stand: UserStand): Promise<void> {
  const mount = { action: "mount", path: stand.mountpoint };
  for (const request of [
    "\n",
    "{\n",
    "[]\n",
    "null\n",
    "x".repeat(10_000),
    { action: "format", path: "/" },
    { ...mount, ...READ_SIZE, path: "relative" },
    { ...mount, ...READ_SIZE, path: `${stand.mountpoint}\0` },
    { ...mount, ...READ_SIZE, path: 7 },
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
}

async function assertServesOthers(stand: UserStand): Promise<void> {
  const silent = stand.ask("no end of line");
  assert.match(await stand.ask("[]\n"), /does not understand/);
  assert.match(await silent, /^(ECONNRESET|EPIPE)?$/);
}

async function assertOnlyItsFolder(stand: UserStand): Promise<void> {
  const elsewhere = join(stand.home.path, "elsewhere");
  await stand.run("mkdir", elsewhere);
  for (const path of [elsewhere, stand.home.path, "/", `${stand.home.path}/x/../.daemon`])
    for (const request of [
      { action: "mount", path, ...READ_SIZE },
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
    await stand.ask({ action: "mount", path: stand.mountpoint, ...READ_SIZE }),
    /it is a symbolic link/,
  );
  await stand.run("rm", stand.mountpoint);
  await stand.run("mkdir", stand.mountpoint);
  await stand.run("touch", join(stand.mountpoint, "mine"));
  assert.match(await stand.ask({ action: "mount", path: stand.mountpoint, ...READ_SIZE }), /it is not empty/);
  assert.doesNotMatch(await readFile("/proc/self/mountinfo", "utf8"), new RegExp(stand.outside));
  // It reads the configuration for each request.
  const other = join(stand.home.path, "other");
  await stand.configure(`store: { driver: embedded }\nfuse: { enabled: true, mountpoint: ${other} }\n`);
  assert.equal(await stand.ask({ action: "mount", path: other, ...READ_SIZE }), "ok");
  assert.equal(await stand.ask({ action: "unmount", path: other, lazy: true }), "ok");
}

async function assertServesNoOther(stand: UserStand, helper: { readonly log: string }): Promise<void> {
  const request = { action: "mount", path: stand.mountpoint, ...READ_SIZE };
  assert.match(await stand.ask(request, asStranger), /EACCES/);
  // With open folders and an open socket the kernel's word on the user still counts.
  for (const folder of [stand.home.path, join(stand.home.path, "run"), stand.runtime])
    await chmod(folder, 0o755);
  await chmod(join(stand.runtime, "mount.sock"), 0o666);
  for (const words of [[...asStranger], ["env"]])
    assert.match(await stand.ask(request, words), /^(ECONNRESET|EPIPE)?$/, words.join(" "));
  assert.match(helper.log, /mount helper refused a program of another user/);
  assert.equal(await isMounted(stand.mountpoint), false);
}

async function assertNothingLeft(stand: UserStand): Promise<void> {
  const at = (name: string): string => join(stand.home.path, name);
  const path = join(at("above"), "mount");
  await stand.run("mkdir", "-p", path, join(at("trap"), "mount"));
  await stand.configure(`store: { driver: embedded }\nfuse: { enabled: true, mountpoint: ${path} }\n`);
  const words = [at("above"), at("trap"), at("real"), at("end")];
  const swapping = stand.run(process.execPath, "-e", SWAP, ...words);
  const rounds = Array.from({ length: SWAPPED_MOUNTS }, () => [
    { action: "mount", path, ...READ_SIZE },
    { action: "unmount", path, lazy: true },
  ]).flat();
  const answers = await stand.askEach(rounds);
  await writeFile(at("end"), "");
  assert.equal((await swapping).stderr, "");
  await stand.ask({ action: "unmount", path, lazy: true });
  const left = (await readFile("/proc/self/mountinfo", "utf8"))
    .split("\n")
    .filter((line) => line.includes(stand.outside) && !line.includes(` ${path} `));
  assert.deepEqual(left, [], answers.join("\n"));
  assert.equal(answers.length, rounds.length);
  assert.ok(answers.includes("ok") && answers.some((each) => each.includes("/trap/")), answers.join("\n"));
}

/** Complaints of systemd about the units of the mount helper. */
async function verified(context: TestContext): Promise<string> {
  const folder = await tempFolder("helper-units");
  context.after(() => folder.remove());
  const paths = await Promise.all(
    ["agent-mount.socket", "agent-mount.service"].map(async (name) => {
      const path = join(folder.path, name);
      const text = await readFile(join(UNITS, name), "utf8");
      await writeFile(path, text.replace("/usr/bin/agent", AGENT_LAUNCHER));
      return path;
    }),
  );
  const env = { ...process.env, XDG_RUNTIME_DIR: folder.path };
  const { stdout, stderr, code } = await run(ANALYZE, ["--user", "verify", ...paths], { env });
  return `${stdout}${stderr}${code === 0 ? "" : `exit ${code}`}`;
}
