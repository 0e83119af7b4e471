import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import {
  AGENT_LAUNCHER,
  loopSeconds,
  startVault,
  tempFolder,
  testSeed,
  until,
  type TempFolder,
  type Vault,
} from "@devplat/testkit";
import { Home, daemon } from "./agent-stand.ts";
import { killLoop } from "./agent-sync-kill.ts";
import { generator } from "./agent-sync-random.ts";

/** A value that must never be seen outside of the store and the target files. */
const PLANTED = "planted-hunter2-value";

const folders: TempFolder[] = [];
async function home(): Promise<Home> {
  const folder = await tempFolder("agent-home");
  folders.push(folder);
  return new Home(folder.path);
}

let vault: Vault;
before(async () => {
  vault = await startVault();
});
after(async () => {
  await vault.stop();
  for (const folder of folders) await folder.remove();
});

const RULE = `rules:
  - name: registry
    key: work/registry
    target:
      path: ~/app.yaml
      format: yaml
      template: |
        registry:
          token: {{ .token }}
          port: {{ .port }}
`;
const EXISTING = `# Written by hand.
registry:
    url: "https://registry.example"   # stays
    token: none yet   # managed
    port: 1
big: 12345678901234567890   # not ours
list: [a,   b]
`;

/** Both drivers, set up with the same secret. */
const DRIVERS = {
  vault: async (place: Home): Promise<void> => {
    await place.configure(`store: {address: "${vault.address}", username: ada}\n${RULE}`);
    await place.write(".daemon-token", `${vault.rootToken}\n`);
  },
  embedded: async (place: Home): Promise<void> => {
    await place.configure(`store: {driver: embedded, username: ada}\n${RULE}`);
  },
} as const;

for (const [driver, prepare] of Object.entries(DRIVERS)) {
  describe(`agent sync with the ${driver} store`, () => {
    it("updates a commented YAML file changing only the managed bytes", async () => {
      const place = await home();
      await prepare(place);
      await place.write("app.yaml", EXISTING, 0o640);
      await place.ok("secrets", "put", "work/registry", "token=t0ken", "port=443");
      assert.match(await place.ok("sync"), /1 changed, 0 unchanged, 0 failed/);
      const expected = EXISTING.replace("none yet", "t0ken").replace("port: 1", "port: 443");
      assert.equal(await place.read("app.yaml"), expected);
      assert.equal((await stat(join(place.path, "app.yaml"))).mode & 0o777, 0o640);
      assert.match(await place.ok("run", "--once"), /0 changed, 1 unchanged, 0 failed/);
    });

    it("secrets: put merges, get hides, list and rm [agent 5.14]", async () => {
      const place = await home();
      await prepare(place);
      await place.ok("secrets", "put", "a/b", "x=1", "y=2");
      await place.ok("secrets", "put", "a/b", "y=3");
      assert.doesNotMatch(await place.ok("secrets", "get", "a/b"), /[13]$/m);
      assert.equal(await place.ok("secrets", "get", "a/b", "x"), "1\n");
      assert.deepEqual(JSON.parse(await place.ok("secrets", "get", "a/b", "--json", "--reveal")), {
        path: "a/b",
        version: 2,
        fields: { x: "1", y: "3" },
      });
      assert.match(await place.ok("secrets", "list"), /^a\/$/m);
      assert.equal(await place.ok("secrets", "list", "a/"), "b\n");
      assert.equal(
        (await place.agent(["secrets", "rm", "a/b"])).code,
        1,
        "without --yes and without a terminal",
      );
      await place.ok("secrets", "rm", "a/b", "--yes");
      assert.equal((await place.agent(["secrets", "get", "a/b"])).code, 1);
    });
  });
}

describe("signing in with a token", () => {
  it("AGENT_TOKEN precedes the token file, and an invalid one only causes a warning [agent 10.1]", async () => {
    const place = await home();
    await DRIVERS.vault(place);
    await place.write(".daemon-token", "hvs.not-a-token");
    assert.equal((await place.agent(["status", "--check"])).code, 1);
    const { stdout } = await place.agent(["status", "--json"], { AGENT_TOKEN: vault.rootToken });
    assert.equal(JSON.parse(stdout).auth.source, "environment");
    await place.write(".daemon-token", vault.rootToken);
    const second = await place.agent(["status", "--json"], { AGENT_TOKEN: "hvs.not-a-token" });
    assert.equal(JSON.parse(second.stdout).auth.source, "file");
    assert.match(second.stderr, /does not accept the token of AGENT_TOKEN/);
    assert.doesNotMatch(second.stderr, /hvs\./);
  });

  it("the store's own standard variable is ignored [agent 10.4]", async () => {
    const place = await home();
    await DRIVERS.vault(place);
    await writeFile(join(place.path, ".daemon-token"), "");
    const { code, stderr } = await place.agent(["sync"], { VAULT_TOKEN: vault.rootToken });
    assert.equal(code, 1);
    assert.match(stderr, /not signed in to the secrets store: no token found/);
  });

  it("a token file that others can read is refused with the next step [agent 10.5]", async () => {
    const place = await home();
    await DRIVERS.vault(place);
    await chmod(join(place.path, ".daemon-token"), 0o644);
    const { code, stderr } = await place.agent(["sync"]);
    assert.equal(code, 1);
    assert.match(stderr, /refused the token file .*others can read or write it.*chmod 600/);
  });

  it("--dry-run without a valid token exits 1 with the reason [agent 6.6]", async () => {
    const place = await home();
    await DRIVERS.vault(place);
    await place.write(".daemon-token", "hvs.bad");
    const { code, stderr } = await place.agent(["sync", "--dry-run"]);
    assert.equal(code, 1);
    assert.match(stderr, /not signed in/);
    await assert.rejects(readdir(join(place.path, ".local")), { code: "ENOENT" });
  });
});

describe("a planted secret", () => {
  it("is in no output, log, state file, dry run, or process title [agent 18.4]", async () => {
    const place = await home();
    await DRIVERS.vault(place);
    await place.write("app.yaml", EXISTING.replace("none yet", `${PLANTED}-old`));
    await place.write("value", PLANTED);
    const outputs: string[] = [];
    const note = async (...args: string[]): Promise<void> => {
      const { stdout, stderr } = await place.agent([...args, "--log-level", "debug"]);
      outputs.push(stdout, stderr);
    };
    await note("secrets", "put", "work/registry", "token=@" + join(place.path, "value"), "port=1");
    await note("sync", "--dry-run");
    assert.match(outputs.join(""), /^-\s+token: ••••/m, "the dry run shows the changed line masked");
    await note("sync");
    await note("status");
    await note("status", "--json");
    await note("rules", "list", "--json");
    await note("secrets", "get", "work/registry");
    // Now an error: a broken file. Then a value that would be structure if it were not quoted.
    await place.write("app.yaml", `a: [${PLANTED}\n`);
    await note("sync");
    await place.write("app.yaml", EXISTING);
    await place.ok("secrets", "put", "work/registry", `token=${PLANTED}\nadmin: true`);
    await note("sync");
    await note("sync", "--dry-run");
    await note("status");
    await note("config", "check", `--${PLANTED}`);
    assert.doesNotMatch(outputs.join("\n"), new RegExp(PLANTED));
    assert.doesNotMatch(await place.read(".local/state/daemon/state.json"), new RegExp(PLANTED));
    const written = parse(await place.read("app.yaml")) as Record<string, Record<string, unknown>>;
    assert.deepEqual(Object.keys(written), ["registry", "big", "list"], "the value did not become a key");
    assert.equal(written["registry"]?.["token"], `${PLANTED}\nadmin: true`);
  });

  it("is removed from the process title while a command waits [agent 5.31]", async () => {
    const place = await home();
    await DRIVERS.embedded(place);
    const child = spawn(AGENT_LAUNCHER, ["secrets", "put", "k", `a=${PLANTED}`, "b=-"], { env: place.env });
    try {
      // It waits for its input, however long its start takes.
      const title = (): Promise<string> => readFile(`/proc/${child.pid}/cmdline`, "latin1");
      await until(
        async () => (await title()).startsWith("agent"),
        () => "the title has not changed",
      );
      assert.doesNotMatch(await title(), new RegExp(PLANTED));
    } finally {
      child.stdin.end("x\n");
      await once(child, "close");
    }
    assert.equal(child.exitCode, 0);
  });
});

describe("agent run", () => {
  it("syncs on start, follows the store, answers sync, and stops on SIGTERM [agent 1.2 5.4]", async () => {
    const place = await home();
    await place.configure(`store: {driver: embedded}\nweb: {enabled: true, listen: "127.0.0.1:0"}\n${RULE}`);
    await place.ok("secrets", "put", "work/registry", "token=one", "port=1");
    const holds = (text: string) => async (): Promise<boolean> =>
      (await place.read("app.yaml")).includes(text);
    const running = await daemon(place, holds("one"));
    try {
      await until(
        async () => /^Web UI: http:\/\/127\.0\.0\.1:\d+\/$/m.test(running.output()),
        () => running.output(),
      );
      await place.ok("secrets", "put", "work/registry", "token=two");
      await until(holds("two"), () => running.log());
      assert.match(
        await place.ok("sync"),
        /0 changed, 1 unchanged, 0 failed/,
        "the daemon does it, as it holds the lock",
      );
      const second = await place.agent(["run"]);
      assert.equal(second.code, 1);
      assert.match(second.stderr, /another agent holds .*lock\.db/);
      assert.equal(await running.stop(), 0);
    } finally {
      await running.stop();
    }
    assert.match(await place.ok("sync"), /0 changed, 1 unchanged, 0 failed/);
  });

  it("keeps files and reports them as stale while the store is down, then recovers [agent 9.7]", async () => {
    const place = await home();
    const own = await startVault();
    // A cycle may fall between the store's return and the value's: the next one is to come within this test.
    const more = 'web: {enabled: true, listen: "127.0.0.1:0"}\nsync: {interval: 10s}';
    await place.configure(`store: {address: "${own.address}", username: ada}\n${more}\n${RULE}`);
    await place.write(".daemon-token", own.rootToken);
    await own.put("users/ada/work/registry", { token: "one", port: 1 });
    const holds = (text: string) => async (): Promise<boolean> =>
      (await place.read("app.yaml")).includes(text);
    const running = await daemon(place, holds("one"));
    try {
      const synced = await place.read("app.yaml");
      await own.pause();
      const failed = await place.agent(["sync"]);
      assert.equal(failed.code, 1);
      assert.match(failed.stderr, /the running daemon could not sync: cannot reach the store/);
      const { stdout } = await place.agent(["status"]);
      assert.match(stdout, /stale since \d{4}-/);
      assert.equal((await place.agent(["status", "--check"])).code, 1);
      assert.equal(await place.read("app.yaml"), synced);
      // Its memory is lost with it: versions count from 1 again, and the new value has to be noticed all the same.
      await own.resume();
      await own.put("users/ada/work/registry", { token: "two", port: 1 });
      await until(holds("two"), () => running.log());
      assert.equal((await place.agent(["status", "--check"])).code, 0);
      assert.equal(await running.stop(), 0);
    } finally {
      await running.stop();
      await own.stop();
    }
  });
});

describe("kill -9 at random points of a sync loop", () => {
  it("never leaves a truncated or wrong-mode file, and the next sync works [agent 13.2]", async () => {
    const place = await home();
    const end = performance.now() + loopSeconds(0.004) * 1000;
    const more = (kills: number): boolean => kills < 10 || performance.now() < end;
    assert.ok((await killLoop(place.path, generator(testSeed()), more)) >= 10);
  });
});
