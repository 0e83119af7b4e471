import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { exists } from "@devplat/base";
import { isStillRunning, readProcess, type ProcessRecord } from "@devplat/base/process-record";
import { run, tempFolder, until, type TempFolder } from "@devplat/testkit";

const ROOT = resolve(import.meta.dirname, "../..");
const GUIDE = join(ROOT, "docs/svc/several-instances.md");
/** Milliseconds for the whole walk-through on a busy machine. */
const LIMIT_MS = 240_000;
const NAMES = ["a", "b", "code-host", "nginx", "postgres", "s3"];

/** A running `npm run start:instances`. */
class Start {
  readonly data: string;
  readonly #npm: ChildProcess;
  output = "";

  private constructor(data: string) {
    this.data = data;
    this.#npm = spawn("npm", ["run", "start:instances"], {
      cwd: ROOT,
      env: { ...process.env, START_DATA_DIR: data },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    for (const stream of [this.#npm.stdout, this.#npm.stderr]) {
      stream?.on("data", (bytes: Buffer) => (this.output += bytes.toString()));
    }
  }

  static async begin(data: string): Promise<Start> {
    const start = new Start(data);
    await until(
      () => /Ctrl-C stops everything/.test(start.output) || start.#npm.exitCode !== null,
      () => start.output,
    );
    assert.equal(start.#npm.exitCode, null, start.output);
    return start;
  }

  /** Process that owns all others. */
  get pid(): number {
    return Number(/\(or: kill (\d+)\)/.exec(this.output)?.[1]);
  }

  /** Its processes by name, as the files in `pids` tell. */
  async processes(): Promise<Map<string, ProcessRecord>> {
    const found = new Map<string, ProcessRecord>();
    for (const name of await readdir(join(this.data, "pids"))) {
      const record = await readProcess(Number(await readFile(join(this.data, "pids", name), "utf8")));
      assert.ok(record !== undefined, name);
      found.set(name, record);
    }
    return found;
  }

  async keeperPid(): Promise<number> {
    const { stdout } = await run("ps", ["-o", "pid=,args=", "--ppid", `${this.pid}`]);
    return Number.parseInt(stdout.split("\n").find((line) => line.includes("keeper.ts")) ?? "", 10);
  }

  /** Sends the signal to the process group of npm, as a terminal does. */
  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.#npm.exitCode !== null || this.#npm.signalCode !== null) return;
    const ended = once(this.#npm, "close");
    process.kill(-(this.#npm.pid ?? 0), signal);
    await ended;
  }
}

async function untilAllEnded(processes: ReadonlyMap<string, ProcessRecord>): Promise<void> {
  for (const [name, record] of processes) {
    await until(
      async () => !(await isStillRunning(record)),
      () => `${name} still runs`,
    );
  }
}

async function startWith(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return run("npm", ["run", "--silent", "start:instances", "--", ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
  });
}

describe("guide to several instances", () => {
  let folder: TempFolder;
  let start: Start;
  before(async () => {
    folder = await tempFolder("several-instances");
    start = await Start.begin(folder.path);
  });
  after(async () => {
    await start?.end("SIGINT");
    await folder.remove();
  });

  it("its walk-through passes as it is written", async () => {
    const lines = (await walkThrough()).replaceAll("data/instances", folder.path);
    assert.match(lines, /kill -9/);
    const { code, stdout, stderr } = await run("sh", ["-ec", lines], {
      cwd: ROOT,
      timeoutMs: LIMIT_MS,
      env: { PATH: process.env["PATH"], HOME: folder.path, TMPDIR: folder.path },
    });
    assert.equal(code, 0, stdout + stderr + start.output);
    assert.match(stdout, /^ok +bucket: can be used$/m);
    assert.match(stdout, /^svc_cache_fetch_total\{result="hit"\} 1$/m);
    assert.match(stdout, /^127\.0\.0\.1:\d+ .* ready /m, "the list of instances");
  });

  it("prints address, credentials and process id of all that it starts", async () => {
    const processes = await start.processes();
    assert.deepEqual([...processes.keys()].toSorted(), NAMES);
    for (const name of ["b", "code-host", "nginx", "postgres", "s3"]) {
      const line = new RegExp(String.raw`^ +${name} +${processes.get(name)?.pid} +\S+://\S+`, "m");
      assert.match(start.output, line);
    }
    assert.match(start.output, /key id \S+, secret \S+/);
    assert.match(start.output, /push as dev with the password \S+/);
  });

  it("a second start in the same folder is refused, with the process that uses it", async () => {
    const { code, stderr } = await startWith([], { START_DATA_DIR: folder.path });
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`process ${start.pid} already runs several instances there`));
    assert.equal((await start.processes()).size, NAMES.length, "the first one is not touched");
  });

  it("all processes end with it, also a paused one and when it is killed with -9", async () => {
    const processes = await start.processes();
    const { temporary } = JSON.parse(await readFile(join(folder.path, "start.json"), "utf8")) as {
      temporary: string;
    };
    process.kill(processes.get("s3")?.pid ?? 0, "SIGSTOP");
    process.kill(start.pid, "SIGKILL");
    await untilAllEnded(processes);
    await until(async () => !(await exists(join(folder.path, "start.json"))));
    assert.deepEqual([await exists(temporary), await exists(join(folder.path, "env"))], [false, false]);
  });

  it("ends the processes that an earlier start left behind, and its own with Ctrl-C", async () => {
    start = await Start.begin(folder.path);
    const left = await start.processes();
    process.kill(await start.keeperPid(), "SIGKILL");
    process.kill(start.pid, "SIGKILL");
    assert.ok(await isStillRunning(left.get("a")!), "nobody has ended it");
    start = await Start.begin(folder.path);
    await untilAllEnded(left);
    const own = await start.processes();
    assert.equal(own.size, NAMES.length);
    process.kill(own.get("a")?.pid ?? 0, "SIGSTOP");
    await start.end("SIGINT");
    await untilAllEnded(own);
  });

  it("its command line has a help, and refuses wrong arguments", async () => {
    const help = await startWith(["--help"]);
    assert.equal(help.code, 0);
    for (const text of [/--instances <n>/, /START_DATA_DIR/, /Postgres/, /S3 server/]) {
      assert.match(help.stdout, text);
    }
    for (const [args, reason] of [
      [["--instances", "0"], /"0" instances: --instances takes a number from 1 to 8/],
      [["--instances", "9"], /"9" instances/],
      [["--instances", "2.5"], /"2\.5" instances/],
      [["4"], /argument "4": .*-- --instances 4/],
      [["--instnces", "4"], /Unknown option '--instnces'\. Run .*--help/],
    ] as const) {
      const { code, stdout, stderr } = await startWith(args);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, reason);
    }
  });
});

/** The indented lines of the section "Try it", without the first block, which starts the instances. */
async function walkThrough(): Promise<string> {
  const section = /## Try it\n([^]*?)\n## /.exec(await readFile(GUIDE, "utf8"))?.[1] ?? "";
  const lines = section.split("\n").filter((line) => line.startsWith("    "));
  assert.equal(lines[0], "    npm run start:instances");
  return lines.slice(1).join("\n");
}
