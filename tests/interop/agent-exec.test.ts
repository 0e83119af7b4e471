import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { AGENT_LAUNCHER, gitEnvironment, run, tempFolder, until, type TempFolder } from "@devplat/testkit";
import { Home } from "./agent-stand.ts";

const folders: TempFolder[] = [];
after(async () => {
  for (const folder of folders) await folder.remove();
});

async function home(text = ""): Promise<Home> {
  const folder = await tempFolder("agent-home");
  folders.push(folder);
  const place = new Home(folder.path);
  await place.configure(`store: {driver: embedded}\n${text}`);
  await place.ok("secrets", "put", "tools/api", "token=planted-one", "username=ada");
  return place;
}

describe("agent exec", () => {
  it("sets fields and dotenv variables, hides AGENT_TOKEN, and gives the exit code [agent 5.23]", async () => {
    const rule = `rules: [{name: e, key: tools/api, target: {path: ~/.env, format: dotenv, template: "API_USER={{ .username }}\\n"}}]\n`;
    const place = await home(rule);
    const script = 'echo "$T:$API_USER:$AGENT_TOKEN"; exit 7';
    const args = ["exec", "--env", "T=tools/api#token", "--env", "U=tools/api#username", "--rule", "e"];
    const { code, stdout } = await place.agent([...args, "--", "sh", "-c", script], { AGENT_TOKEN: "x" });
    assert.equal(stdout, "planted-one:ada:\n");
    assert.equal(code, 7);
    assert.deepEqual(await run("ls", [join(place.path, ".env")]).then((ls) => ls.code !== 0), true);
  });

  it("names what is wrong, and shows no value in a dry run", async () => {
    const place = await home();
    const missing = await place.agent(["exec", "--env", "T=tools/api#nothing", "--", "true"]);
    assert.match(missing.stderr, /tools\/api has no field nothing\nIts fields are: .*\btoken\b/);
    const got = await place.agent(["secrets", "get", "tools/api", "nothing"]);
    assert.match(got.stderr, /tools\/api has no such field\nIts fields are: .*\btoken\b/);
    assert.doesNotMatch(missing.stderr + got.stderr, /planted/);
    const form = await place.agent(["exec", "--env", "planted", "--", "true"]);
    assert.match(form.stderr, /--env takes VARIABLE=path#field/);
    const dry = await place.ok("exec", "--dry-run", "--env", "T=tools/api#token", "--", "true");
    assert.equal(dry, "would set T\n");
    const gone = await place.agent(["exec", "--env", "T=tools/api#token", "--", "/no/such"]);
    assert.match(gone.stderr, /cannot start \/no\/such \(ENOENT\)/);
    const both = await place.agent(["exec", "--restart", "--signal", "HUP", "--", "true"]);
    assert.deepEqual([both.code, both.stderr], [1, "agent: --restart and --signal exclude each other\n"]);
  });

  for (const [how, option] of [
    ["starts it again", ["--restart"]],
    ["sends the signal", ["--signal", "USR1"]],
  ] as const) {
    it(`${how} when a secret changes, and passes on SIGTERM [agent 5.24]`, async () => {
      const place = await home();
      const script = `trap 'echo usr1' USR1; trap 'exit 0' TERM; echo "has $T"; while :; do sleep 0.05; done`;
      const args = ["exec", ...option, "--env", "T=tools/api#token", "--", "sh", "-c", script];
      const child = spawn(AGENT_LAUNCHER, args, { env: place.env, stdio: ["ignore", "pipe", "inherit"] });
      let output = "";
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      const said = (text: string) => (): Promise<boolean> => Promise.resolve(output.includes(text));
      try {
        await until(said("has planted-one"), () => output);
        await place.ok("secrets", "put", "tools/api", "token=two");
        await until(said(option[0] === "--restart" ? "has two" : "usr1"), () => output);
      } finally {
        child.kill("SIGTERM");
        await once(child, "close");
      }
      assert.equal(child.exitCode, 0);
    });
  }
});

describe("agent git-credential", () => {
  it("answers git for its hosts, and for no other host, user or plain http [agent 4.19 5.25]", async () => {
    const credentials = `git_credentials:
  - {host: git.example, key: tools/api, password_field: token}
  - {host: "*.corp.example", key: tools/api, password_field: token}
`;
    const place = await home(credentials);
    const bin = join(place.path, "bin");
    await mkdir(bin);
    await symlink(AGENT_LAUNCHER, join(bin, "git-credential-agent"));
    const env = { ...gitEnvironment(), ...place.env, PATH: `${bin}:${process.env["PATH"] ?? ""}` };
    const fill = (input: string): ReturnType<typeof run> =>
      run("git", ["-c", `credential.helper=!${AGENT_LAUNCHER} git-credential`, "credential", "fill"], {
        env: { ...env, GIT_TERMINAL_PROMPT: "0", GIT_ASKPASS: "false" },
        input: `${input}\n\n`,
      });
    const good = await fill("protocol=https\nhost=git.example");
    assert.equal(
      good.stdout,
      "protocol=https\nhost=git.example\nusername=ada\npassword=planted-one\n",
      good.stderr,
    );
    assert.match((await fill("protocol=https\nhost=a.corp.example")).stdout, /password=planted-one/);
    assert.match((await fill("protocol=https\nhost=git.example:443")).stdout, /password=planted-one/);
    for (const other of [
      "protocol=https\nhost=git.example:8443",
      "protocol=https\nhost=a.corp.example:8443",
      "url=https://git.example:8443/x.git",
      "protocol=https\nhost=evil.com/.corp.example",
      "protocol=https\nhost=other.example",
      "protocol=https\nhost=evilcorp.example",
      "protocol=http\nhost=git.example",
      "protocol=https\nhost=git.example\nusername=bob",
    ]) {
      const { code, stdout } = await fill(other);
      assert.notEqual(code, 0, other);
      assert.doesNotMatch(stdout, /planted/);
    }
    const erased = await place.agent(["git-credential", "erase"]);
    assert.deepEqual([erased.code, erased.stdout], [0, ""]);
    await place.ok("secrets", "put", "tools/api", "token=@/dev/null");
  });

  it("answers nothing to requests that git does not send [agent 4.20]", async () => {
    const place = await home(
      "git_credentials: [{host: '*.corp.example', key: tools/api, password_field: token}]\n",
    );
    const ask = (input: string): ReturnType<typeof run> =>
      run(AGENT_LAUNCHER, ["git-credential", "get"], { env: place.env, input });
    const good = "protocol=https\nhost=a.corp.example\n";
    assert.match((await ask(`${good}\n`)).stdout, /planted/);
    assert.match((await ask(`capability[]=a\ncapability[]=b\nwwwauth[]=\n${good}`)).stdout, /planted/);
    for (const hostile of [
      "protocol=https\nhost=evil.com/.corp.example\n\n",
      "protocol=https\nhost=evil.com\r.corp.example\n\n",
      "protocol=https\nhost=evil.com\0.corp.example\n\n",
      "protocol=https\nhost=evil.com\nhost=a.corp.example\n\n",
      `${good}host=evil.com\n\n`,
      `${good}username=ada\r\n\n`,
      `${good}path=x\0y\n\n`,
      `\n${good}`,
      "protocol=https\n\nhost=a.corp.example\n",
      "protocol=https\r\nhost=a.corp.example\r\n\r\n",
      "",
    ]) {
      const { code, stdout } = await ask(hostile);
      assert.deepEqual([code, stdout], [0, ""], JSON.stringify(hostile));
    }
  });

  it("refuses a value that would add lines of its own [agent 5.25]", async () => {
    const place = await home("git_credentials: [{host: git.example, key: tools/x}]\n");
    const file = await place.write("value", "a\nhost=evil");
    await place.ok("secrets", "put", "tools/x", `password=@${file}`);
    const { code, stderr } = await run(AGENT_LAUNCHER, ["git-credential", "get"], {
      env: place.env,
      input: "protocol=https\nhost=git.example\n\n",
    });
    assert.equal(code, 1);
    assert.match(stderr, /holds a line break/);
    assert.doesNotMatch(stderr, /evil/);
  });
});

describe("agent doctor", () => {
  it("reports faults of targets, commands, folders and enrolments, also as JSON [agent 5.26]", async () => {
    const place = await home(`rules:
  - {name: fine, key: tools/api, target: {path: ~/fine.yaml, format: yaml}}
  - {name: bad, key: tools/api, target: {path: ~/.ssh/authorized_keys, format: text, template: "x"}}
  - {name: cmd, key: tools/api, target: {path: ~/c.yaml, format: yaml}, run: {command: [no-such-program]}}
enrolments: {tools/key: {engine: ssh}}
`);
    await mkdir(join(place.path, ".cache/daemon"), { recursive: true });
    await chmod(join(place.path, ".cache/daemon"), 0o755);
    const { code, stdout } = await place.agent(["doctor"]);
    assert.equal(code, 1);
    assert.match(stdout, /^FAULT {4}target of rule bad: cannot write ~\/\.ssh\/authorized_keys/m);
    assert.match(stdout, /^FAULT {4}command of rule cmd: the program is not in PATH/m);
    assert.match(stdout, /^ok {7}target of rule fine/m);
    assert.match(stdout, /^warning {2}folder .*\.cache\/daemon: others can look into it/m);
    assert.match(stdout, /^warning {2}enrolments: outstanding: tools\/key/m);
    assert.match(stdout, /^warning {2}daemon: not running/m);
    assert.doesNotMatch(stdout, /planted/);
    const { findings } = JSON.parse((await place.agent(["doctor", "--json"])).stdout) as {
      findings: unknown[];
    };
    assert.ok(findings.length > 8);
  });

  it("of a broken configuration says where", async () => {
    const place = await home();
    await place.configure("store: {driver: embedded}\nrules: 3\n");
    const { code, stdout } = await place.agent(["doctor"]);
    assert.equal(code, 1);
    assert.match(stdout, /FAULT {4}configuration: .*config\.yaml:2:1: rules: expected a list/);
  });
});
