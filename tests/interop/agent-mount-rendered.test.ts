import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile, realpath, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { BOX_IMAGE, readersPython, run, startDockerd, until } from "@devplat/testkit";
import { mountStand, quick, untilText, type MountStand } from "./agent-mount-stand.ts";

const TIMEOUT_MS = 240_000;

/** A password that needs quotes in most formats. */
const PASSWORD = `p a"s$s w\\ord#1`;
const BASE64 = Buffer.from(PASSWORD).toString("base64");
const KUBECONFIG = `# by hand
current-context: dev
users:
- name: prod   # stays
  user: {token: keep}
- name: dev
  user:
    token: old
`;

/** A rule with a template. */
const rule = (name: string, mount: string, format: string, lines: readonly string[], more = ""): string => `
  - name: ${name}
    key: demo/registry
    target:
      mount: ${mount}
      format: ${format}
      ${more}
      template: |
${lines.map((line) => `        ${line}`).join("\n")}`;

const RULES = `
rules:
  - { name: env, key: demo/registry, target: { mount: app/.env, format: dotenv } }
  - { name: json, key: demo/registry, target: { mount: app/config.json, format: json } }
  - { name: yaml, key: demo/registry, target: { mount: app/config.yaml, format: yaml } }
  - { name: late, key: demo/late, target: { mount: late/.env, format: dotenv } }
${rule("ini", "app/config.ini", "ini", ["[registry]", "token = {{ .password }}"])}
${rule("git", "app/.gitconfig", "ini", ["[user]", "  name = {{ .password }}"])}
${rule("npm", "app/.npmrc", "ini", ["init-author-name={{ .password | base64encode }}"])}
${rule("toml", "app/config.toml", "toml", ["[registries.mine]", "token = {{ .password | toJSON }}"])}
${rule("netrc", "app/.netrc", "netrc", ["machine forge.example login {{ .user }} password {{ .password | base64encode }}"])}
${rule("ssh", "app/ssh_config", "ssh_config", ["Host build", "  HostName build.example", "  User {{ .user }}"])}
${rule("text", "app/motto", "text", ["{{ .user }}:{{ .password }}"])}
${rule("kube", "kube/config", "yaml", ["users:", "  - name: dev", "    user: { token: {{ .password | toJSON }} }"], "base: ~/.kube/config\n      lists: { users: name }")}
${rule("python-only", "guarded/key", "text", ["{{ .password }}"], "allow: [/usr/bin/python3]")}
${rule("count", "count/value", "text", ["{{ if eq .user `nobody` }}{{ .typo.deep }}{{ end }}{{ .user }}"])}
`;

const MOTTO = `ada:${PASSWORD}\n`;
const DAEMON = { state: ".local/state/daemon/state.json" };

/** The value that a Python expression finds in the text, bytes or name of a file. */
async function python(path: string, expression: string): Promise<string> {
  const script = `import configparser, dotenv, json, netrc, sys, tomllib, yaml
path = sys.argv[1]
print(${expression}, end='')`;
  const { stdout, stderr, code } = await run(readersPython(), ["-c", script, path], {});
  assert.equal(code, 0, stderr);
  return stdout;
}

async function output(...command: string[]): Promise<string> {
  const { stdout, stderr, code } = await quick(...command);
  assert.equal(code, 0, `${command.join(" ")}: ${stderr}`);
  return stdout;
}

describe("files that rules render on the mount", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  const put = (fields: Record<string, string>, path = "demo/registry"): Promise<void> =>
    stand.store(path, JSON.stringify(fields));
  const ruleState = async (name: string): Promise<{ state: string; error: string | null }> => {
    const { rules } = JSON.parse(await stand.place.ok("status", "--json")) as {
      rules: Record<string, { state: string; error: string | null }>;
    };
    return rules[name] ?? { state: "", error: null };
  };
  const untilState = async (name: string, state: string): Promise<string> => {
    let seen = "";
    await until(
      async () => {
        const now = await ruleState(name);
        seen = JSON.stringify(now);
        return now.state === state;
      },
      () => `${seen}\n${stand.agent.log()}`,
    );
    return seen;
  };

  before(async () => {
    stand = await mountStand("agent-mount-rendered", "cache_ttl: 5m, read_write: true", RULES);
    await stand.place.write(".kube/config", KUBECONFIG);
    await put({ user: "ada", password: PASSWORD });
    await untilText(stand.at("app/motto"), MOTTO);
  });
  after(() => stand.remove());

  it("give docker-compose its variables with --env-file, also to up [agent 39.7]", async (context) => {
    const docker = await startDockerd();
    context.after(() => docker.stop());
    const file = await stand.place.write(
      "project/docker-compose.yml",
      `version: "3"
services:
  app:
    image: ${BOX_IMAGE}
    network_mode: none
    environment: { TAKEN: "\${password}" }
    command: [sh, -c, 'echo "<$$TAKEN>"']
`,
    );
    const compose = async (...words: string[]): Promise<string> => {
      const args = ["--file", file, "--env-file", stand.at("app/.env"), ...words];
      const env = { ...process.env, DOCKER_HOST: `unix://${docker.socket}` };
      const { code, stdout, stderr } = await run("docker-compose", args, { env, timeoutMs: 60_000 });
      assert.equal(code, 0, stderr);
      return stdout;
    };
    try {
      assert.ok((await compose("up", "--no-color")).includes(`<${PASSWORD}>`));
    } finally {
      await compose("down");
    }
  });

  it("are read by the programs that they are for, each of exact size [agent 39.7]", async () => {
    const readings: [file: string, read: (path: string) => Promise<string>, value: string][] = [
      ["app/.env", (path) => python(path, "dotenv.dotenv_values(path)['password']"), PASSWORD],
      ["app/config.json", (path) => output("jq", "-j", ".password", path), PASSWORD],
      ["app/config.yaml", (path) => python(path, "yaml.safe_load(open(path))['password']"), PASSWORD],
      [
        "app/config.ini",
        (path) =>
          python(
            path,
            "(lambda c: (c.read(path), c['registry']['token'])[1])(configparser.RawConfigParser())",
          ),
        PASSWORD,
      ],
      [
        "app/.gitconfig",
        (path) => output("git", "config", "--null", "--file", path, "user.name"),
        `${PASSWORD}\0`,
      ],
      [
        "app/.npmrc",
        (path) => output("npm", "config", "get", "init-author-name", "--userconfig", path),
        `${BASE64}\n`,
      ],
      [
        "app/config.toml",
        (path) => python(path, "tomllib.load(open(path, 'rb'))['registries']['mine']['token']"),
        PASSWORD,
      ],
      ["app/.netrc", (path) => python(path, "netrc.netrc(path).authenticators('forge.example')[2]"), BASE64],
      ["app/motto", (path) => output("cat", path), MOTTO],
      [
        "kube/config",
        (path) =>
          python(path, "json.dumps([u['user']['token'] for u in yaml.safe_load(open(path))['users']])"),
        JSON.stringify(["keep", PASSWORD]).replaceAll('","', '", "'),
      ],
    ];
    for (const [file, read, value] of readings) {
      assert.equal(await read(stand.at(file)), value, file);
      const size = (await output("stat", "-c", "%s %a %F", stand.at(file))).trim();
      const bytes = (await readFile(stand.at(file))).length;
      assert.equal(size, `${bytes} 400 regular file`, file);
    }
    assert.match(await output("ssh", "-G", "-F", stand.at("app/ssh_config"), "build"), /^user ada$/m);
    const names = await output("find", stand.mountpoint, "-type", "f", "-printf", "%P\n");
    assert.equal(names.trim().split("\n").length, readings.length + 4, names);
  });

  it("merge into a base file, which stays as it is, and follow its changes [agent 39.1]", async () => {
    const merged = await readFile(stand.at("kube/config"), "utf8");
    assert.equal(merged, KUBECONFIG.replace("token: old", `token: ${PASSWORD}`));
    assert.equal(await stand.place.read(".kube/config"), KUBECONFIG);
    await stand.place.write(".kube/config", KUBECONFIG.replace("keep", "kept"));
    await until(
      async () => (await readFile(stand.at("kube/config"), "utf8")).includes("token: kept"),
      () => stand.agent.log(),
    );
  });

  it("stay whole for an open reader, and show a change to the next one [agent 39.2]", async () => {
    const script = 'exec 3<"$0"; read -r _; cat <&3; echo; cat "$0"';
    const reader = spawn("sh", ["-c", script, stand.at("app/motto")], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: reader.stdout })[Symbol.asyncIterator]();
    await until(
      async () =>
        stand.agent
          .log()
          .includes('"program":"/usr/bin/dash","count":1,"msg":"a file of the mount was opened"'),
      () => stand.agent.log(),
    );
    await put({ user: "bob", password: "changed" });
    await untilText(stand.at("app/motto"), "bob:changed\n");
    reader.stdin.end("\n");
    const seen: string[] = [];
    for (let line = await lines.next(); line.done !== true; line = await lines.next()) seen.push(line.value);
    assert.deepEqual(seen, [MOTTO.trim(), "", "bob:changed"]);
    await put({ user: "ada", password: PASSWORD });
    await untilText(stand.at("app/motto"), MOTTO);
  });

  it("are never a mix of two versions while their secret is replaced again and again", async () => {
    const script = `
import sys, time
end = time.monotonic() + 2
reads = seen = 0
while time.monotonic() < end:
    text = open(sys.argv[1]).read()
    user, password = text.rstrip('\\n').split(':', 1)
    assert user == 'ada' or user * len(password) == password, text
    reads += 1
    seen += user != 'ada'
print(reads, seen)
`;
    const readers = Array.from({ length: 6 }, () => output("python3", "-c", script, stand.at("app/motto")));
    const all = Promise.all(readers);
    const end = performance.now() + 2000;
    for (let count = 1; performance.now() < end; count++) {
      const user = String(count % 10);
      await put({ user, password: user.repeat((count * 7) % 2000 || 1) });
    }
    for (const line of await all) {
      const [reads = 0, seen = 0] = line.split(" ").map(Number);
      assert.ok(reads > 10 && seen > 10, line);
    }
    await put({ user: "ada", password: PASSWORD });
    await untilText(stand.at("app/motto"), MOTTO);
  });

  it("appear when their secret does, and are not listed before", async () => {
    assert.equal(await output("ls", "-A", stand.at("late")), "");
    assert.notEqual((await quick("cat", stand.at("late/.env"))).code, 0);
    await put({ a: "1" }, "demo/late");
    await untilText(stand.at("late/.env"), "a='1'\n");
    await stand.forget("demo/late");
    await until(
      async () => (await output("ls", "-A", stand.at("late"))) === "",
      () => stand.agent.log(),
    );
  });

  it("cannot be read while their template fails, and the status names the rule [agent 39.3]", async () => {
    await put({ user: "nobody", password: PASSWORD });
    const failed = await untilState("count", "failed");
    assert.match(failed, /typo/);
    assert.match((await quick("cat", stand.at("count/value"))).stderr, /Input\/output error/);
    await put({ user: "ada", password: PASSWORD });
    await untilText(stand.at("count/value"), "ada\n");
    await untilState("count", "ok");
  });

  it("are given only to the programs of allow, and the log names others [agent 39.4]", async () => {
    const path = stand.at("guarded/key");
    assert.match((await quick("cat", path)).stderr, /Permission denied/);
    assert.equal(
      await output("/usr/bin/python3", "-c", `print(open(${JSON.stringify(path)}).read(), end='')`),
      `${PASSWORD}\n`,
    );
    const cat = await realpath("/usr/bin/cat");
    await until(
      async () => stand.agent.log().includes("a program may not open a file of the mount"),
      () => stand.agent.log(),
    );
    const line = stand.agent
      .log()
      .split("\n")
      .find((each) => each.includes("may not open"));
    assert.match(line ?? "", new RegExp(`"path":"guarded/key".*"program":"${cat}"`));
  });

  it("are changed by nobody, also with read_write: EACCES", async () => {
    const path = stand.at("app/motto");
    const other = stand.at("demo/registry.json");
    const script = `
import errno, os, sys
path, other = sys.argv[1:]
tries = [
  lambda: os.open(path, os.O_WRONLY),
  lambda: os.open(path, os.O_RDWR),
  lambda: os.open(path, os.O_WRONLY | os.O_TRUNC),
  lambda: os.truncate(path, 0),
  lambda: os.unlink(path),
  lambda: os.rename(path, path + '.old'),
  lambda: os.rename(other, path),
  lambda: os.mkdir(os.path.join(os.path.dirname(os.path.dirname(path)), 'late/.env')),
]
for each in tries:
  try:
    each()
    print('done')
  except OSError as error:
    print(errno.errorcode[error.errno])
`;
    const seen = await output("python3", "-c", script, path, other);
    assert.deepEqual(
      seen.trim().split("\n"),
      Array.from({ length: 8 }, () => "EACCES"),
    );
    assert.equal(await readFile(path, "utf8"), MOTTO);
  });

  it("give way to a secret of the same name, and the status says so [agent 39.5]", async () => {
    await put({ mine: "1" }, "app/config");
    await untilText(stand.at("app/config.json"), '{\n  "mine": "1"\n}\n');
    assert.match(
      await untilState("json", "failed"),
      /the secret app\/config has the name of the file app\/config.json/,
    );
    await stand.forget("app/config");
    await until(
      async () => (await quick("jq", "-j", ".password", stand.at("app/config.json"))).stdout === PASSWORD,
      () => stand.agent.log(),
    );
    await untilState("json", "ok");
  });

  it("are gone while their rule is paused", async () => {
    await stand.place.ok("rules", "pause", "text");
    await until(
      async () => (await quick("cat", stand.at("app/motto"))).code !== 0,
      () => stand.agent.log(),
    );
    assert.ok(!(await output("ls", "-A", stand.at("app"))).includes("motto"));
    await stand.place.ok("rules", "resume", "text");
    await untilText(stand.at("app/motto"), MOTTO);
  });

  it("are known to the commands that show rules", async () => {
    assert.match(await stand.place.ok("rules", "list"), /~\/\.daemon\/app\/\.env \(dotenv, on the mount\)/);
    const { stdout: doctor } = await stand.place.agent(["doctor"]);
    assert.match(doctor, /target of rule env: \S+\/\.daemon\/app\/\.env, on no disk/);
    assert.match(await stand.place.ok("sync", "--dry-run"), /0 files would change/);
    const command = ["secrets", "put", "demo/registry", "user=ada", "password=other"];
    const { stdout } = await stand.place.agent(command);
    assert.match(stdout, /\.daemon\/app\/motto: changed \(rule text\)/);
    assert.match(stdout, /\.daemon\/kube\/config: changed \(rule kube\)/);
    await untilText(stand.at("app/motto"), "ada:other\n");
  });

  it("leave no value in state, log or output of the daemon", async () => {
    const state = await stand.place.read(DAEMON.state);
    assert.match(state, /"text"/);
    for (const text of [state, stand.agent.log(), stand.agent.output()])
      for (const value of [PASSWORD, JSON.stringify(PASSWORD).slice(1, -1), BASE64, "changed\\n"])
        assert.ok(!text.includes(value), value);
  });

  it("need a mount: without one config check and doctor say how to get it [agent 39.6]", async () => {
    const config = await stand.place.read(".config/daemon/config.yaml");
    await writeFile(
      `${stand.place.path}/.config/daemon/config.yaml`,
      config.replace("fuse: { enabled: true", "fuse: { enabled: false"),
    );
    const check = await stand.place.agent(["config", "check"]);
    assert.equal(check.code, 1);
    assert.match(
      check.stderr + check.stdout,
      /rules\.env\.target\.mount: there is no mount for this file: set fuse\.enabled: true/,
    );
    await stand.place.ok("reload");
    assert.match(
      await untilState("env", "failed"),
      /there is no mount for this file: set fuse\.enabled: true/,
    );
  });

  it("need a running daemon, which agent secrets put says", async () => {
    await stand.agent.stop();
    const { stderr } = await stand.place.agent([
      "secrets",
      "put",
      "demo/registry",
      "user=ada",
      "password=last",
    ]);
    assert.match(
      stderr,
      /app\/motto: not written yet \(rule text\): no daemon answers; 'agent run' shows it/,
    );
  });
});
