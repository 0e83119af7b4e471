import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { AGENT_LAUNCHER, run, tempFolder, type Finished, type TempFolder } from "@devplat/testkit";

const folders: TempFolder[] = [];
after(async () => {
  for (const folder of folders) await folder.remove();
});

interface Home {
  readonly path: string;
  readonly agent: (...args: string[]) => Promise<Finished>;
  readonly write: (name: string, content: string) => Promise<void>;
  readonly read: (name: string) => Promise<string>;
}

async function home(): Promise<Home> {
  const folder = await tempFolder("agent-cli");
  folders.push(folder);
  const { path } = folder;
  const env = { PATH: process.env["PATH"], HOME: path, XDG_CONFIG_DIRS: join(path, "etc") };
  return {
    path,
    agent: (...args) => run(AGENT_LAUNCHER, args, { env }),
    write: async (name, content) => {
      await mkdir(dirname(join(path, name)), { recursive: true, mode: 0o700 });
      await writeFile(join(path, name), content, { mode: 0o600 });
    },
    read: (name) => readFile(join(path, name), "utf8"),
  };
}

const CONFIG = ".config/daemon/config.yaml";
const configured = (rule: string): string =>
  `store: {driver: embedded}\nrules: [{name: a, key: k, ${rule}}]\n`;
const YAML = "target: {path: ~/f.yaml, format: yaml}";

describe("exit codes and help [agent 18.1]", () => {
  it("a reader that closes the pipe causes no error and no other exit code [agent 18.3]", async () => {
    const { path } = await home();
    const env = { PATH: process.env["PATH"], HOME: path, XDG_CONFIG_DIRS: join(path, "etc") };
    const rows: [args: readonly string[], code: number][] = [
      [["--help"], 0],
      [["version"], 0],
      [["config", "schema"], 0],
      [["completion", "bash"], 0],
      [["status", "--json"], 1],
      [["doctor"], 1],
      [["bogus"], 1],
    ];
    for (const [args, code] of rows) {
      for (const closed of ["stdout", "stderr"] as const) {
        const child = spawn(AGENT_LAUNCHER, args, { env, stdio: "pipe" });
        const open = closed === "stdout" ? child.stderr : child.stdout;
        let text = "";
        open.on("data", (chunk: Buffer) => (text += chunk.toString()));
        // Before the first byte, so that each write meets a pipe without a reader.
        child[closed].destroy();
        assert.deepEqual(await once(child, "close"), [code, null], args.join(" "));
        assert.doesNotMatch(text, /EPIPE|^ +at /m, `${args.join(" ")} without ${closed}`);
      }
    }
  });

  it("no subcommand prints help and exits 0 [agent 5.1]", async () => {
    const { code, stdout } = await (await home()).agent();
    assert.equal(code, 0);
    assert.match(stdout, /^Usage: agent/);
  });

  it("run and sync without a configuration exit 1, with its places and agent init [agent 3.9]", async () => {
    const place = await home();
    for (const command of ["run", "sync"]) {
      const { code, stderr } = await place.agent(command);
      assert.equal(code, 1);
      assert.ok(stderr.includes(join(place.path, "etc/daemon/config.yaml")), stderr);
      assert.ok(stderr.includes(join(place.path, CONFIG)), stderr);
      assert.match(stderr, /agent init/);
    }
    assert.deepEqual(await readdir(place.path), [], "and nothing was made");
  });

  it("init, secrets put and sync work as init prints them [agent 3.10]", async () => {
    const place = await home();
    assert.equal((await place.agent("init")).code, 0);
    assert.equal((await stat(join(place.path, CONFIG))).mode & 0o777, 0o600);
    assert.equal((await place.agent("init")).code, 1, "an existing configuration is not replaced");
    assert.equal((await place.agent("config", "check")).code, 0);
    assert.equal((await place.agent("secrets", "put", "example", "token=s3cret", "user=me")).code, 0);
    assert.equal((await place.agent("sync")).code, 0);
    assert.equal(await place.read("agent-example.yaml"), "service:\n  user: me\n  token: s3cret\n");
  });

  it("secrets put takes no value without end, and none that is not UTF-8 [agent 5.16]", async () => {
    const place = await home();
    await place.agent("init");
    const endless = await place.agent("secrets", "put", "k", "v=@/dev/zero");
    assert.equal(endless.code, 1);
    assert.match(endless.stderr, /the value of v has more than 1048576 bytes/);
    // Node replaces the byte 0xFF of an argument by U+FFFD, so that the original cannot be known.
    for (const part of ["v=a\uFFFD", "\uFFFD=v"]) {
      const broken = await place.agent("secrets", "put", "k", part);
      assert.equal(broken.code, 1, part);
      assert.match(broken.stderr, /is not UTF-8 text/);
    }
    await place.write("value", "\uFFFD");
    assert.equal((await place.agent("secrets", "put", "k", `v=@${join(place.path, "value")}`)).code, 0);
    assert.equal((await place.agent("secrets", "get", "k", "v")).stdout, "\uFFFD\n");
  });

  it("a file that others can read is reported until target.tighten or chmod fixes it", async () => {
    const place = await home();
    const open = "target: {path: ~/f.yaml, format: yaml";
    await place.write(CONFIG, configured(`${open}}`));
    await place.write("f.yaml", "a: 1\n");
    await chmod(join(place.path, "f.yaml"), 0o644);
    await place.agent("secrets", "put", "k", "t=1");
    const warning =
      /others can read ~\/f\.yaml \(mode 0644\), into which rule a writes a secret\. Run chmod 600/;
    assert.match((await place.agent("sync")).stderr, warning);
    for (const command of ["status", "doctor"]) {
      const { stdout, stderr } = await place.agent(command);
      assert.match(stdout + stderr, warning, command);
    }
    await place.write(CONFIG, configured(`${open}, tighten: true}`));
    await place.agent("secrets", "put", "k", "t=2");
    assert.doesNotMatch((await place.agent("sync")).stderr, warning);
    assert.equal((await stat(join(place.path, "f.yaml"))).mode & 0o777, 0o600);
  });

  it("a wrong configuration names file, line, column and key [agent 3.11]", async () => {
    const place = await home();
    await place.write(CONFIG, "store: {driver: embedded}\nsync:\n  intervall: 15m\n");
    for (const args of [["sync"], ["run"], ["status"], ["config", "check"]]) {
      const { code, stderr } = await place.agent(...args);
      assert.equal(code, 1);
      const file = join(place.path, CONFIG);
      assert.match(
        stderr,
        new RegExp(`${file}:3:3: sync.intervall: unknown key; did you mean 'interval'\\?`),
      );
    }
  });

  it("logs on standard error are text on a terminal or on request, otherwise JSON", async () => {
    const place = await home();
    await place.write(CONFIG, configured(YAML));
    await place.agent("secrets", "put", "k", "t=1");
    const json = await place.agent("sync");
    assert.equal(JSON.parse(json.stderr).msg, "file written");
    await place.agent("secrets", "put", "k", "t=2");
    assert.match((await place.agent("sync", "--log-format", "text")).stderr, /^\d\d:\d\d:\d\d info/);
  });

  it("config check names targets that no sync would write", async () => {
    const place = await home();
    const rule = (name: string, path: string): string =>
      `  - {name: ${name}, key: k, target: {path: ${path}, format: yaml}}\n`;
    const rules = rule("good", "~/f.yaml") + rule("out", "/etc/r.yaml") + rule("own", "~/.daemon-token");
    await place.write(CONFIG, `store: {driver: embedded}\nrules:\n${rules}`);
    const { code, stderr } = await place.agent("config", "check");
    assert.equal(code, 1);
    assert.match(
      stderr,
      /config\.yaml:4:\d+: rules\.out\.target\.path: .*\/etc\/r\.yaml.*outside of sync\.allowed_targets/,
    );
    assert.match(stderr, /config\.yaml:5:\d+: rules\.own\.target\.path: .*no rule may write there/);
    assert.doesNotMatch(stderr, /rules\.good/);
    await place.agent("secrets", "put", "k", "a=1");
    // The sync does the changes that the check reports.
    assert.equal((await place.agent("sync")).code, 1);
  });

  it("config schema is a JSON Schema that names the sections [agent 3.17]", async () => {
    const { code, stdout } = await (await home()).agent("config", "schema");
    assert.equal(code, 0);
    const schema = JSON.parse(stdout);
    assert.equal(schema.additionalProperties, false);
    for (const section of ["store", "sync", "web", "rules"]) assert.ok(section in schema.properties, section);
  });
});

describe("--dry-run", () => {
  it("shows a masked diff and makes no write of any kind [agent 6.4]", async () => {
    const place = await home();
    await place.write(CONFIG, configured(YAML));
    await place.write("f.yaml", "# hunter1\nt: hunter2 # hunter3\nother: hunter4\n");
    await place.agent("secrets", "put", "k", "t=hunter5");
    const before = await readdir(place.path, { recursive: true });
    const { code, stdout } = await place.agent("sync", "--dry-run");
    assert.equal(code, 0);
    assert.match(stdout, /^-t: ••••.*\n\+t: ••••/m);
    assert.doesNotMatch(stdout, /hunter/);
    assert.deepEqual(await readdir(place.path, { recursive: true }), before);
    assert.match(await place.read("f.yaml"), /hunter2/);
  });

  it("makes neither store nor state where there is none [agent 6.4]", async () => {
    const place = await home();
    await place.write(CONFIG, configured(YAML));
    const { code, stdout } = await place.agent("run", "--dry-run");
    assert.equal(code, 0);
    assert.match(stdout, /a: nothing is stored under k/);
    assert.deepEqual(await readdir(place.path), [".config"]);
  });

  it("shows only the sizes of text files [agent 6.5]", async () => {
    const place = await home();
    await place.write(CONFIG, configured('target: {path: ~/key, format: text, template: "{{ .t }}"}'));
    await place.agent("secrets", "put", "k", "t=hunter5");
    assert.match(
      (await place.agent("sync", "--dry-run")).stdout,
      /^~\/key: no file -> 7 bytes\n1 file would change/,
    );
  });
});

describe("agent restore", () => {
  it("brings back the file as it was before the rule first touched it [agent 5.22]", async () => {
    const place = await home();
    await place.write(CONFIG, configured(YAML));
    await place.write("f.yaml", "t: mine\n");
    await place.agent("secrets", "put", "k", "t=1");
    await place.agent("sync");
    const active = await place.agent("restore", "a");
    assert.equal(active.code, 1);
    assert.match(active.stderr, /is active and would write the file again/);
    // As the hint says.
    assert.equal((await place.agent("rules", "pause", "a")).code, 0);
    assert.equal((await place.agent("restore", "a")).code, 0);
    assert.equal(await place.read("f.yaml"), "t: mine\n");
    assert.equal((await place.agent("rules", "resume", "a")).code, 0);
    await place.agent("sync");
    assert.equal(await place.read("f.yaml"), `t: "1"\n`);
    await place.write(CONFIG, configured(`paused: true, ${YAML}`));
    assert.equal((await place.agent("restore", "a")).code, 0);
    assert.equal(await place.read("f.yaml"), "t: mine\n");
    assert.equal((await place.agent("restore", "../a")).code, 1);
  });
});

describe("a user who is not root", () => {
  it("reports a read-only folder and another owner's file, and other rules continue [agent 12.12]", async (context) => {
    if (process.geteuid?.() !== 0) return context.diagnostic("needs root to become another user");
    const place = await home();
    const rules = ["locked/f.yaml", "theirs.yaml", "good.yaml"]
      .map((path, i) => `  - {name: r${i}, key: k, target: {path: ~/${path}, format: yaml}}\n`)
      .join("");
    await place.write(CONFIG, `store: {driver: embedded}\nrules:\n${rules}`);
    await mkdir(join(place.path, "locked"));
    for (const name of ["", ".config", ".config/daemon", CONFIG, "locked"]) {
      await chown(join(place.path, name), 65534, 65534);
    }
    await chmod(join(place.path, "locked"), 0o500);
    await place.write("theirs.yaml", "t: 1\n");
    const env = { PATH: process.env["PATH"], HOME: place.path, XDG_CONFIG_DIRS: join(place.path, "etc") };
    const asNobody = (...args: string[]): Promise<Finished> =>
      run("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", AGENT_LAUNCHER, ...args], { env });
    const put = await asNobody("secrets", "put", "k", "t=1");
    assert.equal(put.code, 0, put.stderr);
    const { code, stderr, stdout } = await asNobody("sync");
    assert.equal(code, 1);
    assert.match(stderr, /^r0: cannot write ~\/locked\/f.yaml: no permission to write in .*locked$/m);
    assert.match(stderr, /^r1: cannot write ~\/theirs.yaml: it belongs to another user$/m);
    assert.match(stdout, /1 changed, 0 unchanged, 2 failed/);
  });
});
