import assert from "node:assert/strict";
import { mkdir, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  run,
  startVault,
  tempFolder,
  until,
  type TempFolder,
  type Vault,
} from "@devplat/testkit";
import manifest from "../../apps/agent/package.json" with { type: "json" };
import { AgentHome, writePolicies } from "./agent-auth-stand.ts";
import { Home, daemon } from "./agent-stand.ts";

const RULE = "rules: [{name: r, key: k, target: {path: ~/out.yaml, format: yaml}}]\n";
const folders: TempFolder[] = [];
const homes: AgentHome[] = [];
let vault: Vault;
before(async () => {
  vault = await startVault();
  await writePolicies(vault);
});
after(async () => {
  await vault.stop();
  for (const each of [...homes, ...folders]) await each.remove();
});

async function embedded(more = RULE): Promise<Home> {
  const folder = await tempFolder("agent-rules");
  folders.push(folder);
  const place = new Home(folder.path);
  await place.configure(`store: {driver: embedded}\n${more}`);
  return place;
}

async function central(more: Record<string, unknown> = {}): Promise<AgentHome> {
  const place = await AgentHome.create({ address: vault.address, username: "ada", ...more }, RULE);
  homes.push(place);
  return place;
}

describe("command line rules", () => {
  it("agent version: prints the build version and exits [agent 5.11]", async () => {
    const place = await embedded("broken: [");
    assert.equal(await place.ok("version"), `${manifest.version}\n`);
    assert.deepEqual(JSON.parse(await place.ok("version", "--json")), { version: manifest.version });
  });

  it("agent run --once: one sync cycle, then exit; --once is accepted by run only [agent 1.2 5.3]", async () => {
    const place = await embedded();
    await place.ok("secrets", "put", "k", "token=one");
    assert.match(await place.ok("run", "--once"), /^1 changed, 0 unchanged, 0 failed\n$/);
    assert.equal(await place.read("out.yaml"), "token: one\n");
    for (const command of ["sync", "status", "login", "version"]) {
      const { code, stderr } = await place.agent([command, "--once"]);
      assert.equal(code, 1, command);
      assert.match(stderr, /--once is an option of 'agent run' only/);
    }
  });

  it("agent run: configuration, cached token, web UI, enrolments, sync, in this order [agent 5.2]", async () => {
    const place = await central();
    await place.configure(
      { address: vault.address, username: "ada" },
      `web: {enabled: true, listen: "127.0.0.1:0"}\nenrolments: {mirror: {engine: copy, from: k}}\n${RULE}`,
    );
    await vault.put("users/ada/k", { token: "one" });
    const token = await vault.createUserToken("ada", ["user"]);
    await place.write(".daemon-token", token);
    const running = place.daemon();
    try {
      await until(
        async () =>
          (await place.read("out.yaml")) === "token: one\n" && /credential stored/.test(running.log()),
        () => running.log(),
      );
      await running.logged(/^Web UI: http:\/\/127\.0\.0\.1:\d+\/$/m);
      assert.equal(await place.token(), token, "the cached token was used");
    } finally {
      assert.equal(await running.stop(), 0);
    }
  });

  it("agent login: a fresh login, ignoring a cached token that is still good [agent 5.5]", async () => {
    const place = await central();
    const [cached, fresh] = [
      await vault.createUserToken("ada", ["user"]),
      await vault.createUserToken("ada", ["user"]),
    ];
    await place.write(".daemon-token", cached);
    const { code, shown } = await place.atTerminal(["login"], [[/Token for the secrets store: /, fresh]]);
    assert.equal(code, 0, shown);
    assert.equal(await place.token(), fresh);
  });

  it("agent status: authentication state, token TTL and per-rule sync status [agent 2.7 5.6]", async () => {
    const place = await central();
    await vault.put("users/ada/k", { token: "one" });
    assert.match(
      (await place.agent(["status"])).stdout,
      /^Authentication: not signed in \(no token found\)$/m,
    );
    await place.write(".daemon-token", await vault.createUserToken("ada", ["user"]));
    await place.ok("sync");
    const text = await place.ok("status");
    assert.match(text, /^Authentication: signed in by the token file$/m);
    assert.match(text, /^Token: +\S+ left, renewable$/m);
    assert.match(text, /^RULE +STATE +VERSION +LAST SYNCED +ERROR$/m);
    assert.match(text, /^r +ok +\d+ +\d{4}-\d\d-\d\dT\S+Z$/m);
  });

  it("agent status --check: exits 1 when a rule has failed, and 0 when none has [agent 9.7]", async () => {
    const place = await embedded();
    await place.ok("secrets", "put", "k", "token=one");
    await place.ok("sync");
    await place.ok("status", "--check");
    await place.write("out.yaml", "a: [\n");
    assert.equal((await place.agent(["sync"])).code, 1);
    assert.equal((await place.agent(["status"])).code, 0);
    const checked = await place.agent(["status", "--check"]);
    assert.equal(checked.code, 1);
    assert.match(checked.stdout, /^r +failed /m);
  });

  it("a key that holds nothing: sync names key and rule, and status --check exits 1 [agent 14.28]", async () => {
    const place = await embedded();
    await place.ok("secrets", "put", "k", "token=one");
    await place.ok("sync");
    await place.configure(`store: {driver: embedded}
rules:
  - {name: r, key: K, target: {path: ~/out.yaml, format: yaml}}
  - {name: s, key: k, target: {path: ~/other.yaml, format: yaml, on_missing: remove}}
`);
    const synced = await place.agent(["sync"]);
    assert.equal(synced.code, 0);
    assert.equal(synced.stdout, "1 changed, 0 unchanged, 0 failed, 1 missing: K (rule r)\n");
    const checked = await place.agent(["status", "--check"]);
    assert.equal(checked.code, 1);
    assert.match(checked.stdout, /^r +missing .*nothing is stored under K$/m);
    await place.ok("secrets", "put", "K", "token=two");
    assert.equal((await place.agent(["sync"])).stdout, "1 changed, 1 unchanged, 0 failed\n");
    await place.ok("status", "--check");
  });

  it("agent secrets put: hidden prompt, field=@file, field=-, hint for field=value [agent 5.15]", async () => {
    const place = await AgentHome.create({ driver: "embedded" });
    homes.push(place);
    const asked = await place.atTerminal(
      ["secrets", "put", "k", "typed", "given=as it is"],
      [[/typed: /, "hunter2"]],
    );
    assert.equal(asked.code, 0, asked.shown);
    assert.doesNotMatch(asked.shown, /hunter2/);
    assert.match(
      asked.shown,
      /A value on the command line stays in the shell's history; FIELD alone asks for it\./,
    );
    const file = await place.write("value", "from a file\n");
    const piped = await run(
      "/bin/sh",
      ["-c", 'echo piped | "$0" secrets put k "read=@$1" in=-', AGENT_LAUNCHER, file],
      {
        env: place.env,
      },
    );
    assert.deepEqual([piped.code, piped.stderr], [0, ""], "no hint where nobody looks");
    const { fields } = JSON.parse(await place.ok("secrets", "get", "k", "--json", "--reveal")) as {
      fields: Record<string, string>;
    };
    assert.deepEqual(fields, { typed: "hunter2", given: "as it is", read: "from a file\n", in: "piped" });
  });

  it("reg-export and reg-import convert YAML to the registry format and back [agent 3.31 5.12]", async () => {
    const place = await embedded();
    // UTF-16: by way of a file, as a shell does it.
    const exported = await run("/bin/sh", ["-c", '"$0" reg-export >policy.reg', AGENT_LAUNCHER], {
      env: place.env,
      cwd: place.path,
    });
    assert.equal(exported.code, 0, exported.stderr);
    const yaml = await place.ok("reg-import", join(place.path, "policy.reg"));
    await place.write("again.yaml", yaml);
    // Without its first line, which names the file.
    const print = async (...more: string[]): Promise<string> =>
      (await place.ok("config", "print", ...more)).replace(/^#.*\n/, "");
    assert.equal(await print("--config", join(place.path, "again.yaml")), await print());
    const other = await place.agent(["reg-export", join(place.path, "absent.yaml")]);
    assert.deepEqual([other.code, other.stdout], [1, ""]);
  });
});

describe("global flag rules", () => {
  it("--config, --log-level and --log-format choose the file, level and format [agent 6.2]", async () => {
    const place = await embedded("rules: []\n");
    await place.write("other.yaml", `store: {driver: embedded}\n${RULE}`);
    await place.ok("secrets", "put", "k", "token=one");
    const other = ["--config", join(place.path, "other.yaml")];
    const quiet = await place.agent(["sync", ...other, "--log-level", "error"]);
    assert.deepEqual([quiet.code, quiet.stdout, quiet.stderr], [0, "1 changed, 0 unchanged, 0 failed\n", ""]);
    await rm(join(place.path, "out.yaml"));
    const text = await place.agent(["sync", ...other, "--log-format", "text"]);
    assert.match(text.stderr, /^\d\d:\d\d:\d\d info +file written path="~\/out\.yaml"/m);
    await rm(join(place.path, "out.yaml"));
    const json = await place.agent(["sync", ...other, "--log-format", "json"]);
    assert.equal((JSON.parse(json.stderr.split("\n", 1)[0] ?? "") as { msg: string }).msg, "file written");
    for (const wrong of [
      ["--log-level", "loud"],
      ["--log-format", "xml"],
    ]) {
      const refused = await place.agent(["sync", ...wrong]);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /takes one of: /);
    }
  });

  it("logs go to standard error only: text on a terminal, JSON otherwise [agent 18.2]", async () => {
    const place = await embedded();
    await place.ok("secrets", "put", "k", "token=one");
    const piped = await place.agent(["sync"]);
    assert.equal(piped.stdout, "1 changed, 0 unchanged, 0 failed\n");
    assert.match(piped.stderr, /^\{"level":"info"/);
    const watched = await AgentHome.create({ driver: "embedded" }, RULE);
    homes.push(watched);
    await watched.ok("secrets", "put", "k", "token=one");
    const { shown } = await watched.atTerminal(["sync"]);
    assert.match(shown, /^\d\d:\d\d:\d\d info +file written path="~\/out\.yaml"/m);
  });
});

describe("status block rules", () => {
  it("docker disabled: shown only if a registration file exists, with its state [agent 9.5]", async () => {
    const place = await embedded();
    const plugins = join(place.path, "plugins");
    await mkdir(plugins);
    const status = async (...more: string[]): Promise<string> => {
      const done = await place.agent(["status", ...more], { AGENT_DOCKER_PLUGINS: plugins });
      assert.equal(done.code, 0, done.stderr);
      return done.stdout;
    };
    assert.doesNotMatch(await status(), /Docker/);
    await place.write("plugins/daemon.spec", "unix:///somewhere/else.sock\n");
    const text = await status();
    assert.match(text, /^Docker Volumes$/m);
    assert.match(text, /^ {2}Plugin socket: .* \(docker\.enabled is false: no program serves it\)$/m);
    assert.ok(text.includes(`  Registration:  ${plugins}/daemon.spec\n`));
    assert.match(text, /^ {2}Expected line: unix:\/\/.*\/docker\.sock$/m);
    assert.match(text, /^ {2}State: {9}names a different socket$/m);
    const { docker } = JSON.parse(await status("--json")) as {
      docker: { registrations: [{ expected: string }] };
    };
    await place.write("plugins/daemon.spec", `${docker.registrations[0].expected}\n`);
    assert.match(await status(), /^ {2}State: {9}agrees$/m);
  });
});

describe("agent status while the configuration cannot be used", () => {
  const RUNNING = `web: {enabled: true, listen: "127.0.0.1:0"}\n${RULE}`;
  const FAULT = /^agent: \S+config\.yaml:2:1: rules: expected a list$/m;

  it("exits 1 with the fault, and shows the daemon's work and each rule's state [agent 9.6]", async () => {
    const place = await embedded(RUNNING);
    await place.ok("secrets", "put", "k", "token=one");
    const running = await daemon(place, async () => (await place.read("out.yaml")) === "token: one\n");
    try {
      // The file comes before the cycle's end.
      await until(
        async () => /follows the store's events$[^]*^r +ok +1 /m.test(await place.ok("status")),
        () => running.log(),
      );
      await place.configure("store: {driver: embedded}\nrules: 3\n");
      // The daemon has to be asked between two cycles, with its stream open, and answers within seconds.
      const daemonLine = /^Daemon: +running( for \w+)?, next cycle \d{4}-\S+Z, follows the store's events$/m;
      let last = await place.agent(["status"]);
      await until(
        async () => daemonLine.test((last = await place.agent(["status"])).stdout),
        () => last.stdout,
      );
      const { code, stdout, stderr } = last;
      assert.equal(code, 1);
      assert.match(stderr, FAULT);
      assert.match(
        stdout,
        /^Configuration: +cannot be used; the daemon continues with the one that it has read/m,
      );
      assert.match(stdout, /^Last sync: +\d{4}-\S+Z$/m);
      assert.match(stdout, /^r +ok +1 +\d{4}-\S+Z *$/m);
      const seen = JSON.parse((await place.agent(["status", "--json"])).stdout) as {
        daemon: object;
        rules: Record<string, { state: string }>;
        config: { problems: string[] };
      };
      assert.deepEqual([Object.keys(seen.daemon), seen.rules["r"]?.state], [["running"], "ok"]);
      assert.match(seen.config.problems.join(), /rules: expected a list/);
    } finally {
      await running.stop();
    }
  });

  it("without a daemon shows each rule's state after the last cycle, or the fault [agent 9.6]", async () => {
    const place = await embedded();
    await place.ok("sync");
    await place.configure("store: {driver: embedded}\nrules: 3\n");
    const { code, stdout, stderr } = await place.agent(["status"]);
    assert.equal(code, 1);
    assert.match(stderr, FAULT);
    assert.match(stdout, /^Configuration: +cannot be used\nDaemon: +not running\nLast sync: +\d{4}-\S+Z$/m);
    assert.match(stdout, /^r +missing /m);
    const fresh = await embedded();
    await fresh.configure("store: {driver: embedded}\nrules: 3\n");
    const alone = await fresh.agent(["status"]);
    assert.deepEqual([alone.code, alone.stdout], [1, ""]);
    assert.match(alone.stderr, FAULT);
    const mistyped = await place.agent(["status", "--config", join(place.path, "none.yaml")]);
    assert.deepEqual([mistyped.code, mistyped.stdout], [1, ""]);
    assert.match(mistyped.stderr, /none\.yaml: no such file\nCheck the path after --config\./);
  });
});

describe("login-check rule 2: --no-passwd with AGENT_PASSWD_FILE or /etc/passwd", () => {
  it("a user in /etc/passwd: exit 0 without reading the configuration [agent 8.4]", async () => {
    const place = await embedded("broken: [");
    const { code, stderr } = await place.agent(["login-check", "--no-passwd"]);
    assert.deepEqual([code, stderr], [0, ""]);
    const marker = join(place.path, ".local/state/daemon/login-check-suppress");
    assert.ok(Date.now() - (await stat(marker)).mtimeMs < 60_000);
    await utimes(marker, new Date(0), new Date(0));
    await place.write("passwd", "somebody:x:9:9::/:/bin/sh\n");
    const other = await place.agent(["login-check", "--no-passwd"], {
      AGENT_PASSWD_FILE: join(place.path, "passwd"),
    });
    assert.equal(other.code, 1, "now the broken configuration is looked at");
  });
});

describe("sync rules: an initial sync, then a hybrid loop of events plus polling [agent 1.1]", () => {
  it("the poll brings what no event tells of [agent 1.1 4.14]", async () => {
    const place = await central();
    await place.configure({ address: vault.address, username: "ada" }, `sync: {interval: 10s}\n${RULE}`);
    await place.write(".daemon-token", await vault.createUserToken("ada", ["user"]));
    await vault.put("users/ada/k", { token: "first" });
    const running = place.daemon();
    const holds = (value: string) => async (): Promise<boolean> =>
      (await place.read("out.yaml")) === `token: ${value}\n`;
    try {
      await until(holds("first"), () => running.log());
      await vault.put("users/ada/k", { token: "polled" });
      await until(holds("polled"), () => running.log());
    } finally {
      await running.stop();
    }
  });

  it("an event brings a change immediately, with any interval [agent 1.1]", async () => {
    const place = await embedded(`sync: {interval: 1h}\n${RULE}`);
    await place.ok("secrets", "put", "k", "token=one");
    const holds = (value: string) => async (): Promise<boolean> =>
      (await place.read("out.yaml")) === `token: ${value}\n`;
    const running = await daemon(place, holds("one"));
    try {
      await place.ok("secrets", "put", "k", "token=two");
      await until(holds("two"), () => running.log());
    } finally {
      await running.stop();
    }
  });

  it("sync never waits for an enrolment by the user; deletions are events too [agent 1.5]", async () => {
    const place = await embedded(
      `enrolments: {tools/pin: {engine: prompt, fields: [{name: pin}]}}
rules: [{name: r, key: k, target: {path: ~/out.yaml, format: yaml, on_missing: remove}}]
`,
    );
    await place.ok("secrets", "put", "k", "token=one");
    await place.write("out.yaml", "mine: 1\n");
    const running = await daemon(
      place,
      async () => (await place.read("out.yaml")) === "mine: 1\ntoken: one\n",
    );
    try {
      assert.match(await place.ok("enrol", "list"), /not started/);
      await place.ok("secrets", "rm", "k", "--yes");
      await until(
        async () => (await place.read("out.yaml")) === "mine: 1\n",
        () => running.log(),
      );
    } finally {
      await running.stop();
    }
  });
});
