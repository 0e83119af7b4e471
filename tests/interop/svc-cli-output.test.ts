import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  freePort,
  run,
  spawnGroup,
  SVC_LAUNCHER,
  tempFolder,
  until,
  type TempFolder,
} from "@devplat/testkit";
import { HOSTILE, startHostileService, type HostileService } from "./svc-hostile-service.ts";

/** Characters that a terminal obeys, or does not show, but for the line break. */
const OBEYED = /[^\P{Cc}\n]|[\p{Cf}\u2028\u2029]/u;
/** How a line of another program's making would begin. */
const FORGED = /^svc: forged/m;

/** Every command that talks to a service. With `json`, it has that option. */
const COMMANDS: readonly {
  readonly args: readonly string[];
  readonly json?: true;
  readonly input?: string;
}[] = [
  { args: ["repo", "list"], json: true },
  { args: ["repo", "add", "a/b"] },
  { args: ["repo", "set", "a/b", "--timeout", "5"] },
  { args: ["repo", "remove", "a/b"] },
  { args: ["repo", "warm", "a/b"] },
  { args: ["repo", "purge", "a/b"] },
  { args: ["repo", "import", "-"], json: true, input: "a/b timeout=7\nc/d\n" },
  { args: ["token", "list"], json: true },
  { args: ["token", "show", "1"], json: true },
  { args: ["token", "create", "a/b", "--scopes", "contents:read", "--duration", "1h"], json: true },
  { args: ["token", "revoke", "1"] },
  { args: ["token", "revoke", "--value"], input: "svcx_x" },
  { args: ["admin-token", "list"], json: true },
  { args: ["admin-token", "create", "x", "--duration", "1h"], json: true },
  { args: ["admin-token", "revoke", "1"] },
  { args: ["app", "list"], json: true },
  { args: ["app", "add", "77", "--key", "-"], json: true, input: "PEM" },
  { args: ["app", "check", "77"], json: true },
  { args: ["app", "set", "77", "--default"] },
  { args: ["app", "remove", "77"] },
  { args: ["scopes", "explain", "/x", "--scopes", "contents:read", "--repository", "a/b"], json: true },
  { args: ["auth", "status"], json: true },
  { args: ["auth", "login"], json: true },
  { args: ["auth", "logout"] },
  { args: ["auth", "logout", "--revoke-tokens"] },
];
/** Commands whose output has no text from the service. */
const SILENT = /^(?:repo (?:remove|warm|purge|import)|token revoke|admin-token revoke|auth logout)/;
/** Commands that need no service, and the exit codes that they have here. */
const LOCAL: readonly (readonly [args: readonly string[], code: number])[] = [
  [["version"], 0],
  [["--help"], 0],
  [["repo", "--help"], 0],
  [["config", "check"], 0],
  [["config", "print"], 0],
  [["config", "print", "--json"], 0],
  [["config", "schema"], 0],
  [["migrate", "status", "--json"], 1],
  [["migrate", "up"], 0],
  [["doctor"], 1],
  [["bogus"], 2],
  [["repo", "add"], 2],
];

describe("output of svc", { timeout: 600_000 }, () => {
  let folder: TempFolder;
  let service: HostileService;
  before(async () => {
    [folder, service] = await Promise.all([tempFolder("svc-output"), startHostileService()]);
  });
  after(async () => {
    await service.stop();
    await folder.remove();
  });

  /** Each command has its own home, so that they can run side by side. */
  const environment = async (name: string): Promise<NodeJS.ProcessEnv> => {
    const home = join(folder.path, name.replaceAll(/\W+/g, "-"));
    const credentials = { services: { [service.url]: { token: "svcr_x", username: "x", expires_at: "x" } } };
    await run("mkdir", ["-p", join(home, "config/svc")]);
    await writeFile(join(home, "config/svc/credentials.json"), JSON.stringify(credentials), { mode: 0o600 });
    const inherited = Object.entries(process.env).filter(([key]) => !key.startsWith("SVC_"));
    return {
      ...Object.fromEntries(inherited),
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_CACHE_HOME: join(home, "cache"),
      SVC_URL: service.url,
      SVC_DEV_MODE: "true",
      SVC_DATA_DIR: join(home, "data"),
      SVC_SERVER_LISTEN: "127.0.0.1:1",
    };
  };
  const variants = COMMANDS.flatMap(({ args, json, input }) => [
    { args, input },
    ...(json === true ? [{ args: [...args, "--json"], input }] : []),
  ]);
  /** Two at a time: most of each is the start of a process. */
  const forEach = async <T>(all: readonly T[], each: (item: T) => Promise<void>): Promise<void> => {
    const waiting = [...all];
    const worker = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await each(next);
    };
    await Promise.all([worker(), worker()]);
  };

  for (const mode of ["records", "refusals"] as const) {
    it(`holds no foreign control character ${mode}, on stdout and stderr, also as JSON [svc 10.14]`, async () => {
      service.mode = mode;
      await forEach(variants, async ({ args, input }) => {
        const name = args.join(" ");
        const env = await environment(`${mode} ${name}`);
        const child = spawn(SVC_LAUNCHER, args, { env, stdio: "pipe" });
        const chunks: [Buffer[], Buffer[]] = [[], []];
        child.stdout.on("data", (chunk: Buffer) => chunks[0].push(chunk));
        child.stderr.on("data", (chunk: Buffer) => chunks[1].push(chunk));
        child.stdin.on("error", () => undefined);
        child.stdin.end(input ?? "");
        await once(child, "close");
        // Terminals in other encodings would read bytes that are not UTF-8 as C1 control characters.
        const [out, err] = chunks.map((some) =>
          new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(some)),
        ) as [string, string];
        for (const text of [out, err]) {
          const at = OBEYED.exec(text)?.index;
          assert.equal(
            at,
            undefined,
            `${name}: ${JSON.stringify(text.slice(Math.max(0, (at ?? 0) - 40), (at ?? 0) + 20))}`,
          );
          assert.doesNotMatch(text, FORGED, name);
          assert.doesNotMatch(text, /^ +at /m, `${name} prints a stack trace`);
        }
        const shows = mode === "refusals" || !SILENT.test(name);
        assert.equal(/evil\\u(?:\{1b\}|001b)/.test(out + err), shows, `${name}: ${out}${err}`);
        if (name.endsWith("--json") && mode === "records" && shows) {
          assert.ok(JSON.stringify(JSON.parse(out)).includes(JSON.stringify(HOSTILE).slice(1, -1)), name);
        }
      });
    });
  }

  it("git-credential hands git no line that the service made up", async () => {
    service.mode = "records";
    const { code, stdout } = await run(SVC_LAUNCHER, ["git-credential", "get"], {
      env: { ...(await environment("git-credential")), SVC_TOKEN: "svcr_x" },
      input: `protocol=http\nhost=${new URL(service.url).host}\npath=a/b\n\n`,
    });
    assert.equal(code, 0);
    assert.deepEqual(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.replace(/=.*/, "")),
      ["username", "password", "password_expiry_utc"],
    );
  });

  it("a reader that closes the pipe changes neither the work nor the exit code [svc 10.15]", async () => {
    service.mode = "long";
    const both = ["stdout", "stderr"] as const;
    const all = [
      ...COMMANDS.map(({ args, input }) => ({ args, input, code: 0, closed: both })),
      ...LOCAL.map(([args, code]) => ({ args, input: undefined, code, closed: both })),
      { args: ["token", "list", "--json"], input: undefined, code: 0, closed: ["stdout"] },
      { args: ["app", "check", "78"], input: undefined, code: 1, closed: ["stdout"] },
      { args: ["app", "check", "78"], input: undefined, code: 1, closed: ["stderr"] },
    ] as const;
    await forEach(all, async ({ args, input, code: expected, closed }) => {
      const name = args.join(" ");
      const env = await environment(`closed ${closed.join("-")} ${name}`);
      const child = spawn(SVC_LAUNCHER, args, { env, stdio: "pipe" });
      let text = "";
      for (const stream of both) {
        // Before the first byte, so that each write meets a pipe without a reader.
        if (closed.some((each) => each === stream)) child[stream].destroy();
        else child[stream].on("data", (chunk: Buffer) => (text += chunk.toString()));
      }
      child.stdin.on("error", () => undefined);
      child.stdin.end(input ?? "");
      assert.deepEqual(await once(child, "close"), [expected, null], name);
      assert.doesNotMatch(text, /EPIPE|^ +at |node:/m, `${name} with ${closed.join()} closed`);
    });
  });

  it("svc repo list | head -1 in a shell exits 0 without other output", async () => {
    service.mode = "long";
    const env = { ...(await environment("head")), SVC: SVC_LAUNCHER };
    const rows: [command: string, behind: string, lines: number, code: number][] = [
      ["repo list", "| head -1", 1, 0],
      ["repo list --json", "| head -1", 1, 0],
      ["repo list", "| true", 0, 0],
      ["--help", "| head -1", 1, 0],
      ["bogus", "2>&1 | true", 0, 2],
      ["repo list", ">&-", 0, 0],
      ["repo list", ">&- 2>&-", 0, 0],
      ["version", "2>&-", 1, 0],
    ];
    for (const [command, behind, lines, status] of rows) {
      const script = `"$SVC" ${command} ${behind}; echo "status \${PIPESTATUS[0]}"`;
      const { stdout, stderr } = await run("bash", ["-c", script], { env });
      const shown = stdout.split("\n").filter((line) => line !== "");
      assert.deepEqual([stderr, shown.length - 1], ["", lines], script);
      assert.ok(stdout.endsWith(`status ${status}\n`), script);
    }
  });

  it("a full disk under the output fails the command in one line", async () => {
    service.mode = "long";
    const env = { ...(await environment("full")), SVC: SVC_LAUNCHER };
    for (const command of ["repo list", "version", "--help"]) {
      const { code, stderr } = await run("sh", ["-c", `"$SVC" ${command} > /dev/full`], { env });
      assert.deepEqual([code, stderr], [1, "svc: Cannot write the output: ENOSPC\n"], command);
    }
  });

  it("serve continues when nobody reads its log any more [svc 10.15]", async () => {
    const port = await freePort();
    const env = {
      ...(await environment("serve")),
      SVC_SERVER_LISTEN: `127.0.0.1:${port}`,
      SVC_METRICS_LISTEN: "127.0.0.1:0",
    };
    const child = spawnGroup(SVC_LAUNCHER, ["serve", "--migrate"], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let log = "";
    child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
    await until(() => log.includes('"listening"'));
    child.stdout?.destroy();
    child.stderr?.destroy();
    // Each leaves a line in the access log.
    for (let count = 0; count < 20; count++) {
      assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200);
      assert.equal((await fetch(`http://127.0.0.1:${port}/api/tokens`)).status, 401);
    }
    child.kill("SIGTERM");
    assert.deepEqual(await once(child, "exit"), [0, null]);
  });
});
