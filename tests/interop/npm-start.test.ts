import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  repositories,
  run,
  startCodeHost,
  tempFolder,
  until,
  type CodeHost,
  type TempFolder,
} from "@devplat/testkit";

const ROOT = resolve(import.meta.dirname, "../..");

describe("npm start", () => {
  let folder: TempFolder;
  let codeHost: CodeHost;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    folder = await tempFolder("npm-start");
    codeHost = await startCodeHost();
    await codeHost.addRepository("org", "repo", { build: (dir) => repositories.linear(dir, { commits: 2 }) });
    env = {
      ...process.env,
      START_DATA_DIR: folder.path,
      SVC_HOST_URL: codeHost.url,
      START_REPOSITORY: "org/repo",
    };
  });
  after(async () => {
    await codeHost.stop();
    await folder.remove();
  });

  async function start(args: readonly string[] = []): Promise<{ child: ChildProcess; output: () => string }> {
    const child = spawn("npm", ["start", ...args], {
      cwd: ROOT,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (bytes: Buffer) => (output += bytes.toString()));
    }
    await until(
      async () => /Ctrl-C stops both/.test(output) || child.exitCode !== null,
      () => output,
    );
    return { child, output: () => output };
  }

  /** As Ctrl-C does: to the whole group. */
  async function interrupt(child: ChildProcess): Promise<number | null> {
    process.kill(-(child.pid ?? 0), "SIGINT");
    const [code] = (await once(child, "close")) as [number | null];
    return code;
  }

  /** The printed lines, pasted into one shell. */
  async function paste(): Promise<string> {
    const lines = (await readFile(join(folder.path, "lines.txt"), "utf8")).split("\n");
    const script = lines.filter((line) => line.startsWith("  ")).join("\n");
    const { code, stdout, stderr } = await run("sh", ["-ec", script], {
      cwd: ROOT,
      env: { PATH: process.env["PATH"], HOME: folder.path },
    });
    assert.equal(code, 0, stdout + stderr);
    return stdout;
  }

  it("prints lines that work when pasted, also after a restart, and Ctrl-C exits 0", async () => {
    for (const hits of ["1", "2"]) {
      const { child, output } = await start();
      try {
        assert.match(output(), /Both are up/);
        assert.doesNotMatch(output(), /npm warn EBADENGINE|request log=access/);
        const shown = await paste();
        assert.match(shown, new RegExp(`svc_cache_request_total\\{[^}]*"hit"[^}]*\\} ${hits}`), hits);
        assert.match(shown, /registry\.yaml: (un)?changed[^]*token: hello /);
      } finally {
        assert.equal(await interrupt(child), 0, output());
      }
      assert.match(output(), /Both stopped/);
    }
  });

  it("--local-host has a repository to clone by a seed, and Ctrl-C ends its code host", async () => {
    const usual = env;
    const own = await tempFolder("npm-start-local");
    const { SVC_HOST_URL: _url, START_REPOSITORY: _repository, ...others } = usual;
    env = { ...others, START_DATA_DIR: own.path };
    const { child, output } = await start(["--", "--local-host"]);
    let host = "";
    try {
      host = /in front of (http:\/\/127\.0\.0\.1:\d+)/.exec(output())?.[1] ?? "";
      const shell = async (script: string): Promise<string> => {
        const { code, stdout, stderr } = await run("sh", ["-ec", `. "$HOME/local-host/env"; ${script}`], {
          cwd: own.path,
          env: { PATH: process.env["PATH"], HOME: own.path },
        });
        assert.equal(code, 0, stdout + stderr);
        return stdout + stderr;
      };
      await shell('svc repo add acme/widgets && git clone -q "$SVC_URL/acme/widgets.git" first');
      const url = (await shell('echo "$SVC_URL/acme/widgets.git"')).trim();
      await until(async () => (await fetch(`${url}/svc/seed`)).status === 200, output);
      assert.doesNotMatch(await shell(`svc clone ${url} second`), /without the seed/);
    } finally {
      env = usual;
      assert.equal(await interrupt(child), 0, output());
    }
    await assert.rejects(fetch(host), TypeError);
    await own.remove();
  });

  it("a second start is refused before it changes data, and doctor checks the first", async () => {
    const first = await start();
    try {
      const second = await run("npm", ["start"], { cwd: ROOT, env });
      assert.equal(second.code, 1);
      assert.match(second.stderr, /error: npm start already runs here \(process \d+\): http:/);
      assert.doesNotMatch(second.stderr, /Starting/);
      const script = `. ${join(folder.path, "env")}; svc doctor; agent doctor`;
      const { stdout } = await run("sh", ["-c", script], {
        cwd: ROOT,
        env: { PATH: process.env["PATH"], HOME: folder.path },
      });
      assert.doesNotMatch(stdout, /FAULT/);
      assert.match(stdout, /service: running and ready/);
    } finally {
      await interrupt(first.child);
    }
  });

  it("settings that cannot work are refused before anything is started", async () => {
    const rows: [more: NodeJS.ProcessEnv, args: string[], said: RegExp][] = [
      [
        { SVC_HOST_URL: "127.0.0.1:3000" },
        [],
        /SVC_HOST_URL is not .*did you mean http:\/\/127\.0\.0\.1:3000\?/,
      ],
      [{ START_REPOSITORY: "demo" }, [], /START_REPOSITORY is not OWNER\/NAME: "demo"/],
      [
        {},
        ["--", "--port", "9000"],
        /npm start takes no argument but --local-host, and was given "--port 9000"/,
      ],
      [{}, ["--local-host"], /npm keeps options .* for itself: run npm start -- --local-host/],
      [{}, ["--", "--local-host"], /--local-host has .* of its own: unset SVC_HOST_URL and START_REPOSITORY/],
    ];
    for (const [more, args, said] of rows) {
      const { code, stderr } = await run("npm", ["start", ...args], { cwd: ROOT, env: { ...env, ...more } });
      assert.equal(code, 1);
      assert.match(stderr, said);
      assert.doesNotMatch(stderr, /Starting/);
    }
  });
});
