import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import {
  SVC_LAUNCHER,
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  type CodeHost,
  type Finished,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";

const HOST_TOKEN = "planted-host-token";
const MAIN = "refs/heads/main";

describe("svc ensure", { timeout: 300_000 }, () => {
  let codeHost: CodeHost;
  let folder: TempFolder;
  let svc: Svc;
  let environment: NodeJS.ProcessEnv;
  let count = 0;

  before(async () => {
    codeHost = await startCodeHost();
    folder = await tempFolder("svc-ensure-cli");
    codeHost.addUser("ada", HOST_TOKEN);
    svc = await startSvc({ codeHost, env: { SVC_DEV_HOST_TOKEN: HOST_TOKEN, SVC_CACHE_ENABLED: "true" } });
    const helper = `!f() { echo username=ada; echo password=${HOST_TOKEN}; }; f`;
    await writeFile(join(folder.path, "gitconfig"), `[credential]\n\thelper = "${helper}"\n`);
    environment = {
      ...gitEnvironment(),
      HOME: folder.path,
      GIT_CONFIG_GLOBAL: join(folder.path, "gitconfig"),
      GIT_TERMINAL_PROMPT: "0",
      SVC_URL: svc.url,
      SVC_TOKEN: await svc.signIn(),
    };
  });
  afterEach(() => codeHost.clearFaults());
  after(async () => {
    assert.equal(await svc.stop(), 0);
    await codeHost.stop();
    await folder.remove();
  });

  const command = async (...args: string[]): Promise<Finished> => {
    const finished = await run(SVC_LAUNCHER, args, { env: environment, cwd: folder.path });
    assert.doesNotMatch(finished.stdout + finished.stderr, /planted/);
    return finished;
  };
  /** A private repository, which is listed. */
  const repository = async (isListed = true): Promise<{ name: string; tip: string; path: string }> => {
    const name = `r${++count}`;
    const { path } = await codeHost.addRepository("org", name, {
      private: true,
      build: (dir) => repositories.linear(dir),
    });
    if (isListed) assert.equal((await command("repo", "add", `org/${name}`)).code, 0);
    codeHost.resetCalls();
    return { name, path, tip: await git(["-C", path, "rev-parse", MAIN]) };
  };
  const fetches = (): number => codeHost.calls.filter((call) => call.command === "fetch").length;

  it("brings HEAD here with the credential of git; a clone then needs no fetch", async () => {
    const { name, tip } = await repository();
    const { code, stdout, stderr } = await command("ensure", `org/${name}`);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `ready ${tip} HEAD\n`);
    assert.equal(fetches(), 1);
    const args = ["clone", "-q", `${svc.url}/org/${name}`, join(folder.path, name)];
    const cloned = await run("git", args, { env: environment });
    assert.equal(cloned.code, 0, cloned.stderr);
    assert.equal(fetches(), 1);
  });

  it("takes short and full names of refs, and prints JSON", async () => {
    const { name, path, tip } = await repository();
    await git(["-C", path, "tag", "v1", tip]);
    const { code, stdout, stderr } = await command("ensure", `org/${name}`, "main", "refs/tags/v1", "--json");
    assert.equal(code, 0, stderr);
    const refs = { [MAIN]: tip, "refs/tags/v1": tip };
    assert.deepEqual(JSON.parse(stdout), { state: "ready", repository: `org/${name}`, refs });
  });

  it("ends with code 3 when the time is over, and the fetch goes on", async () => {
    const { name, tip } = await repository();
    const go = Promise.withResolvers<void>();
    codeHost.inject({ command: "fetch" }, { until: go.promise });
    const late = await command("ensure", `org/${name}`, "--timeout", "1");
    assert.equal(late.code, 3, late.stderr);
    assert.equal(late.stdout, `pending org/${name}\n`);
    go.resolve();
    codeHost.clearFaults();
    const then = await command("ensure", `org/${name}`);
    assert.equal(then.stdout, `ready ${tip} HEAD\n`);
    assert.equal(fetches(), 1);
  });

  it("says what is wrong, and ends with code 1 or 2", async () => {
    const { name } = await repository();
    const { name: unlisted } = await repository(false);
    for (const [args, expected, message] of [
      [["org"], 2, /expected <owner>\/<repo>/],
      [[`org/${name}`, "none"], 1, /has no ref "none"/],
      [[`org/${unlisted}`], 1, /answered 404: This repository is not in the list of cached repositories/],
      [["org/nowhere"], 1, /git cannot read the refs of/],
    ] as const) {
      const { code, stderr } = await command("ensure", ...args);
      assert.equal(code, expected, stderr);
      assert.match(stderr, message);
    }
  });
});
