import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, open, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { AGENT_LAUNCHER, run, spawnGroup, tempFolder, until, type TempFolder } from "@devplat/testkit";
import { isMounted, quick } from "./agent-mount-stand.ts";
import { Home } from "./agent-stand.ts";

const IMAGE_BYTES = 64 * 1024 * 1024;
/** Without this capability root cannot read the memory of a process that hides it: what every other user sees. */
const AS_OTHERS = ["--bounding-set=-sys_ptrace"];
const NO_CORE = /^Max core file size +0 +0 /m;

/** Halves of a value. Only a template joins them, so that no file of the store holds the whole. */
interface Halves {
  readonly left: string;
  readonly right: string;
}
const halves = (): Halves => ({
  left: randomBytes(12).toString("hex"),
  right: randomBytes(12).toString("hex"),
});
const joined = ({ left, right }: Halves): string => right + left;
const onDisk = ({ left, right }: Halves): string => `${left}-${right}`;

const CONFIG = `store: { driver: embedded }
api: { enabled: true }
fuse: { enabled: true, layout: both }
rules:
  - name: env
    key: demo/app
    target: { mount: app/.env, format: dotenv, template: 'TOKEN={{ printf "%s%s" .right .left }}' }
  - name: text
    key: demo/app
    target: { mount: app/token, format: text, template: "{{ .right }}{{ .left }}" }
  - name: kube
    key: demo/app
    target:
      mount: kube/config
      format: yaml
      base: ~/base.yaml
      template: 'token: {{ printf "%s%s" .right .left | toJSON }}'
    run: { command: ["true"] }
  - name: control
    key: demo/app
    target: { path: ~/control.env, format: dotenv, template: 'TOKEN={{ printf "%s-%s" .left .right }}' }
`;

/** A value as it could be on a disk. */
function shapes(value: string): Map<string, Buffer> {
  const hex = Buffer.from(value).toString("hex");
  const found = new Map([
    ["text", Buffer.from(value)],
    ["hex", Buffer.from(hex)],
    ["HEX", Buffer.from(hex.toUpperCase())],
    ["UTF-16LE", Buffer.from(value, "utf16le")],
    ["UTF-16BE", Buffer.from(value, "utf16le").swap16()],
    ["reversed", Buffer.from(Buffer.from(value).toReversed())],
  ]);
  for (const shift of [0, 1, 2]) {
    // Without the characters that also depend on what is before and after the value.
    const base64 = Buffer.from("x".repeat(shift) + value).toString("base64");
    found.set(`base64, shifted by ${shift}`, Buffer.from(base64.slice(shift === 0 ? 0 : 4, -4)));
  }
  for (const content of [value, `TOKEN=${value}\n`, `TOKEN="${value}"\n`, `TOKEN='${value}'\n`]) {
    const digest = createHash("sha256").update(content).digest();
    found.set(`digest of ${content}`, digest);
    for (const encoding of ["hex", "base64", "base64url"] as const)
      found.set(`${encoding} digest of ${content}`, Buffer.from(digest.toString(encoding)));
  }
  return found;
}

describe("a disk below a daemon with rendered files", { timeout: 120_000 }, () => {
  let folder: TempFolder;
  let place: Home;
  let image = "";
  let disk = "";
  let mountpoint = "";
  const running: { readonly child: ChildProcess; readonly end: Promise<unknown> }[] = [];
  const log = (): string => readFileSync(join(disk, "log"), "utf8");
  const values: Halves[] = [];

  before(async () => {
    folder = await tempFolder("agent-mount-image");
    image = join(folder.path, "image");
    disk = join(folder.path, "disk");
    await using file = await open(image, "w");
    await file.truncate(IMAGE_BYTES);
    for (const command of [
      ["mkfs.ext4", "-q", "-F", image],
      ["mkdir", disk],
      ["mount", "-o", "loop", image, disk],
      ["chmod", "700", disk],
    ])
      assert.equal((await run(command[0] ?? "", command.slice(1), {})).code, 0, command.join(" "));
    const more = { XDG_RUNTIME_DIR: join(disk, "run"), TMPDIR: join(disk, "tmp") };
    for (const each of Object.values(more)) await mkdir(each, { mode: 0o700 });
    place = new Home(disk, more);
    mountpoint = join(disk, ".daemon");
    await place.configure(CONFIG);
    await place.write("base.yaml", "mine: 1 # stays\n");
  });
  after(async () => {
    for (const { child, end } of running) {
      child.kill("SIGKILL");
      await end;
    }
    for (const path of [mountpoint, disk])
      if (await isMounted(path)) await run("umount", ["--lazy", path], {});
    await folder.remove();
  });

  /** Starts a daemon that logs to the disk, with any limit for core files. */
  async function start(): Promise<{ readonly pid: number; readonly end: Promise<unknown> }> {
    const script = 'ulimit -c unlimited; exec "$0" run --log-level debug >> log 2>&1';
    const args = [...AS_OTHERS, "sh", "-c", script, AGENT_LAUNCHER];
    const child = spawnGroup("setpriv", args, { env: place.env, cwd: disk });
    const end = once(child, "exit");
    running.push({ child, end });
    await until(
      async () => (await quick("cat", join(mountpoint, "app/token"))).code === 0,
      () => log(),
    );
    return { pid: child.pid ?? 0, end };
  }

  async function put(): Promise<void> {
    const value = halves();
    values.push(value);
    await place.ok("secrets", "put", "demo/app", `left=${value.left}`, `right=${value.right}`);
  }

  /** Uses the files as people do, while the newest value is in the memory of all who serve it. */
  async function use(): Promise<void> {
    const value = joined(values.at(-1) ?? halves());
    const at = (path: string): string => join(mountpoint, path);
    await until(
      async () => (await quick("cat", at("app/token"))).stdout === value,
      () => log(),
    );
    assert.match((await quick("cat", at("app/.env"))).stdout, new RegExp(value));
    assert.match((await quick("grep", "-r", "token", at("kube"))).stdout, new RegExp(value));
    assert.equal(
      (await quick("python3", "-c", `print(open("${at("app/token")}").read(), end="")`)).stdout,
      value,
    );
  }

  /** Runs commands that show rules. None shows a value. */
  async function show(): Promise<void> {
    const value = joined(values.at(-1) ?? halves());
    const commands = ["status", "rules list", "rules diff env", "sync --dry-run", "doctor"];
    for (const command of commands)
      assert.doesNotMatch((await place.agent(command.split(" "))).stdout, new RegExp(value), command);
  }

  /** The mount server of a daemon. */
  async function serverOf(daemon: number): Promise<number> {
    const { stdout } = await run("pgrep", ["-P", String(daemon)], {});
    return Number(stdout.trim());
  }

  /** Whether others can look into the memory of a process. The kernel then also writes core files of it. */
  async function isDumpable(pid: number): Promise<boolean> {
    return (await run("setpriv", [...AS_OTHERS, "sh", "-c", `: < /proc/${pid}/mem`], {})).code === 0;
  }

  it("hold no core file of the daemon or the mount server [agent 39.9]", async () => {
    await put();
    const { pid, end } = await start();
    await use();
    const ordinary = spawn("setpriv", [...AS_OTHERS, "sleep", "60"]);
    await until(
      async () => await isDumpable(ordinary.pid ?? 0),
      () => "an ordinary process hides its memory",
    );
    ordinary.kill("SIGKILL");
    const server = await serverOf(pid);
    for (const each of [pid, server]) {
      assert.match(await readFile(`/proc/${each}/limits`, "utf8"), NO_CORE);
      assert.equal(await isDumpable(each), false);
    }
    process.kill(server, "SIGSEGV");
    await until(
      async () => (await serverOf(pid)) > 0 && (await serverOf(pid)) !== server,
      () => log(),
    );
    await use();
    process.kill(pid, "SIGSEGV");
    assert.deepEqual(await end, [null, "SIGSEGV"]);
    await until(
      async () => !(await isMounted(mountpoint)),
      () => "the mount is still there",
    );
    const names = await readdir(disk, { recursive: true });
    assert.deepEqual(
      names.filter((name) => /(?:^|\/)core(?:$|\.)/.test(name)),
      [],
    );
  });

  it("hold no value after use, changes, errors and an orderly end [agent 39.9]", async () => {
    const { pid, end } = await start();
    await put();
    await use();
    await show();
    await place.write("base.yaml", "mine: [1\n");
    await until(
      async () => (await quick("cat", join(mountpoint, "kube/config"))).stderr.includes("Input/output error"),
      () => log(),
    );
    await place.write("base.yaml", "mine: 2\n");
    await put();
    await use();
    await until(
      async () => (await place.read("control.env")).includes(onDisk(values.at(-1) ?? halves())),
      () => log(),
    );
    process.kill(pid, "SIGTERM");
    await end;
    for (const command of [["sync"], ["umount", disk]])
      assert.equal((await run(command[0] ?? "", command.slice(1), {})).code, 0);
    const bytes = await readFile(image);
    // The search finds what is on the disk: the file of an ordinary rule.
    assert.ok(bytes.includes(onDisk(values.at(-1) ?? halves())));
    for (const value of values)
      for (const [shape, pattern] of shapes(joined(value)))
        assert.equal(bytes.indexOf(pattern), -1, `the disk has a value as ${shape}`);
  });
});
