import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { tempFolder, until, type TempFolder } from "@devplat/testkit";
import { Home, daemon, webUrl } from "./agent-stand.ts";

const folders: TempFolder[] = [];
after(async () => {
  for (const folder of folders) await folder.remove();
});

const STORE = 'store: {driver: embedded}\nweb: {enabled: true, listen: "127.0.0.1:0"}\n';
const rule = (name: string): string =>
  `  - {name: ${name}, key: k, target: {path: ~/${name}.yaml, format: yaml}}\n`;

async function home(): Promise<Home> {
  const folder = await tempFolder("agent-home");
  folders.push(folder);
  const place = new Home(folder.path);
  await place.configure(`${STORE}rules:\n${rule("a")}`);
  await place.ok("secrets", "put", "k", "token=one");
  return place;
}

describe("a running daemon", () => {
  it("repairs a changed or removed target without waiting for the poll [agent 16.4]", async () => {
    const place = await home();
    const holds = async (): Promise<boolean> => (await place.read("a.yaml")).includes("token: one\n");
    const running = await daemon(place, holds);
    try {
      await place.write("a.yaml", "mine: 1\ntoken: theirs\n");
      await until(holds, () => running.log());
      assert.equal(await place.read("a.yaml"), "mine: 1\ntoken: one\n");
      await rm(join(place.path, "a.yaml"));
      await until(holds, () => running.log());
    } finally {
      await running.stop();
    }
  });

  it("rules pause and resume show in the list and the status without a daemon [agent 5.19]", async () => {
    const place = await home();
    await place.ok("sync");
    for (const [action, state] of [
      ["pause", "paused"],
      ["resume", "pending"],
    ] as const) {
      await place.ok("rules", action, "a");
      const { rules } = JSON.parse(await place.ok("rules", "list", "--json")) as {
        rules: { state: string }[];
      };
      assert.deepEqual(
        rules.map((each) => each.state),
        [state],
      );
      assert.match(await place.ok("status"), new RegExp(`^a +${state}`, "m"));
      await place.ok("sync");
    }
    assert.match(await place.ok("rules", "list"), /^a +ok/m);
  });

  it("reload applies rules, keeps the old ones on errors, and names what needs a start [agent 3.27]", async () => {
    const place = await home();
    const running = await daemon(place, async () => (await place.read("a.yaml")) !== "");
    const config = async (): Promise<{ problems: string[]; reload_needed: string[] }> => {
      const url = await webUrl(running);
      const status = (await (await fetch(`${url}/api/v1/status`)).json()) as {
        config: { problems: string[]; reload_needed: string[] };
      };
      return status.config;
    };
    try {
      await place.configure(`${STORE}rules:\n${rule("a")}${rule("b")}`);
      assert.match(await place.ok("reload"), /reads its configuration again/);
      await until(
        async () => (await place.read("b.yaml")).includes("one"),
        () => running.log(),
      );

      await place.configure(`${STORE}rules: 3\n`);
      const refused = await place.agent(["reload"]);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /rules: expected a list/);
      assert.ok(running.pid !== undefined);
      process.kill(running.pid, "SIGHUP");
      await until(
        async () => (await config()).problems.length > 0,
        () => running.log(),
      );
      assert.match((await config()).problems.join("\n"), /not used: .*rules: expected a list/);
      await place.configure(`${STORE.replace("embedded", "embedded, kv_mount: other")}rules:\n${rule("a")}`);
      process.kill(running.pid, "SIGHUP");
      await until(
        async () => (await config()).reload_needed.length > 0,
        () => running.log(),
      );
      assert.deepEqual(await config().then((now) => [now.problems, now.reload_needed]), [[], ["store"]]);
      const text = await place.ok("status");
      assert.match(text, /^Daemon: +running( for \w+)?, next cycle \d{4}-\S+Z, follows the store's events$/m);
      assert.match(text, /^Warning: +changed, applies after the daemon's next start: store$/m);
    } finally {
      await running.stop();
    }
  });

  it("rules pause keeps a rule paused over restarts, and resume continues it [agent 5.19]", async () => {
    const place = await home();
    const holds = (text: string) => async (): Promise<boolean> => (await place.read("a.yaml")).includes(text);
    const running = await daemon(place, holds("one"));
    try {
      assert.equal(await place.ok("rules", "pause", "a"), "paused 'a'\n");
      await place.ok("secrets", "put", "k", "token=two");
      assert.match(await place.ok("sync"), /0 changed/);
      assert.match(await place.ok("rules", "list"), /^a +paused/m);
      assert.match(await place.ok("rules", "diff", "a"), /0 files would change/);
      await place.ok("rules", "resume", "a");
      await until(holds("two"), () => running.log());
    } finally {
      await running.stop();
    }
    assert.equal((await place.agent(["rules", "pause", "zzz"])).code, 1);
    const gone = await place.agent(["reload"]);
    assert.match(gone.stderr, /no daemon of this user is running/);
  });
});

describe("the command line", () => {
  it("every reading command gives JSON too, with values masked as in its text [agent 3.16 5.13]", async () => {
    const place = await home();
    type Printed = { sources: string[]; config: { store: { driver: string } } };
    const printed = JSON.parse(await place.ok("config", "print", "--json")) as Printed;
    assert.deepEqual(
      [printed.sources, printed.config.store.driver],
      [[join(place.path, ".config/daemon/config.yaml")], "embedded"],
    );
    const diff = JSON.parse(await place.ok("rules", "diff", "a", "--json")) as Record<string, unknown>;
    assert.deepEqual(diff, {
      changes: [
        {
          path: "~/a.yaml",
          rules: ["a"],
          diff: "--- /dev/null\n+++ ~/a.yaml\n@@ -0,0 +1,1 @@\n+token: ••••\n",
        },
      ],
      missing: {},
      failed: {},
    });
    assert.match(await place.ok("status"), /^Daemon: +not running$/m);
  });

  it("a rule or an enrolment that is not there is named, with where to look [agent 5.20 18.1]", async () => {
    const place = await home();
    for (const action of ["pause", "resume", "diff"]) {
      const { code, stderr } = await place.agent(["rules", action, "nope"]);
      assert.deepEqual(
        [code, stderr],
        [1, "agent: there is no rule 'nope'\n'agent rules list' shows the rules.\n"],
      );
    }
    for (const action of ["run", "skip", "reset"]) {
      const { code, stderr } = await place.agent(["enrol", action, "nope"]);
      assert.equal(code, 1);
      assert.match(stderr, /under the key "nope"\n'agent enrol list' shows them\./);
    }
  });

  it("rules diff masks values, and --reveal is for terminals only [agent 5.19 6.7]", async () => {
    const place = await home();
    const shown = await place.ok("rules", "diff", "a");
    assert.match(shown, /^\+token: ••••$/m);
    const revealed = await place.agent(["rules", "diff", "a", "--reveal"]);
    assert.equal(revealed.code, 1);
    assert.match(revealed.stderr, /on a terminal only/);
  });

  it("config check --json gives every fault with its place [agent 3.15]", async () => {
    const place = await home();
    assert.equal((JSON.parse(await place.ok("config", "check", "--json")) as { ok: boolean }).ok, true);
    await place.configure("store: {driver: embedded}\nweb: {enabled: 3}\n");
    const { code, stdout } = await place.agent(["config", "check", "--json"]);
    assert.equal(code, 1);
    const { problems } = JSON.parse(stdout) as { problems: { line: number; key: string }[] };
    assert.deepEqual([problems[0]?.line, problems[0]?.key], [2, "web.enabled"]);
  });

  it("config check refuses templates that cannot work; the other rules sync [agent 3.16]", async () => {
    const place = await home();
    const broken = `  - {name: b, key: k, target: {path: ~/b.txt, format: text, template: "x {{ .token | qoute }}"}}\n`;
    const file = await place.configure(`${STORE}rules:\n${rule("a")}${broken}`);
    const fault = 'rules.b.target.template: line 1, column 15 of the template: there is no function "qoute"';
    const { code, stdout, stderr } = await place.agent(["config", "check"]);
    assert.deepEqual([code, stdout, stderr], [1, "", `agent: ${file}:5:61: ${fault}\n`]);
    const asJson = await place.agent(["config", "check", "--json"]);
    assert.equal(asJson.code, 1);
    const { ok, problems } = JSON.parse(asJson.stdout) as { ok: boolean; problems: { line: number }[] };
    assert.deepEqual([ok, problems.map(({ line }) => line)], [false, [5]]);
    const cycle = await place.agent(["sync"]);
    assert.equal(cycle.code, 1);
    assert.equal(await place.read("a.yaml"), "token: one\n");
  });

  it("refusals of a rule and of the configuration name a line, and of which text [agent 3.12]", async () => {
    const place = await home();
    const broken = (name: string, format: string, template: string): string =>
      `  - {name: ${name}, key: k, target: {path: ~/${name}, format: ${format}, template: ${JSON.stringify(template)}}}\n`;
    await place.write("existing", "x: 1\ny: [\n");
    await place.write("alias", "b: &b {q: 2}\nz: *b\n");
    const rules = [
      broken("yaml", "yaml", "a: 1\nb: [x\n"),
      broken("json", "json", '{\n"a": }'),
      broken("toml", "toml", "a = 1\nb = \n"),
      broken("ini", "ini", "a = 1\nb"),
      broken("dotenv", "dotenv", "A=1\nb c=2\n"),
      broken("netrc", "netrc", "machine x\nlogin y\nfoo bar\n"),
      broken("existing", "yaml", "a: 1\n"),
      broken("alias", "yaml", "z:\n  q: 1\n"),
      broken("absent", "yaml", "a: 1\nb: {{ .nope }}\n"),
    ];
    await place.configure(`${STORE}rules:\n${rules.join("")}`);
    const { code, stderr } = await place.agent(["sync"]);
    assert.equal(code, 1);
    const TEMPLATE = "of the rendered template";
    for (const expected of [
      `yaml: this is not YAML (line 3, column 1 ${TEMPLATE})`,
      `json: this is not JSON (line 2, column 6 ${TEMPLATE})`,
      `toml: this is not a TOML value (line 2, column 5 ${TEMPLATE})`,
      `ini: this is not ini: a key and its value were expected (line 2, column 1 ${TEMPLATE})`,
      `dotenv: this is not dotenv: KEY=value was expected (line 2, column 3 ${TEMPLATE})`,
      `netrc: this is not netrc: a keyword was expected (line 3, column 1 ${TEMPLATE})`,
      "existing: this is not YAML (line 3, column 1 of the file)",
      "alias: z is an alias (*) (line 2, column 3 of the file)",
      "absent: absent:2:7: there is no .nope",
    ]) {
      assert.ok(stderr.includes(expected), `${expected}\n${stderr}`);
    }
    const vault = 'store:\n  address: "https://127.0.0.1:1"\n  ca_cert: ~/nothing.pem\n';
    const file = await place.configure(vault);
    assert.equal(
      (await place.agent(["sync"])).stderr,
      `agent: ${file}:3:3: store.ca_cert: ${join(place.path, "nothing.pem")} cannot be read (ENOENT)\n`,
    );
  });

  it("an overlay with other sections than fuse only warns [agent 3.21]", async () => {
    const place = await home();
    await place.write("etc/daemon/config.yaml", `${STORE}rules:\n${rule("a")}`);
    const file = await place.configure("fuse:\n  enabled: false\nrules: []\n");
    for (const args of [["sync"], ["status"], ["rules", "list"], ["config", "check"], ["secrets", "list"]]) {
      const { code, stderr } = await place.agent(args);
      assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
      assert.doesNotMatch(stderr, /fuse\.enabled/);
      assert.ok(stderr.includes(`${file}:3:1: rules has no effect: `), stderr);
    }
    assert.equal(await place.read("a.yaml"), "token: one\n");
  });

  it("completion is a script that the shell takes [agent 5.28]", async () => {
    const { run } = await import("@devplat/testkit");
    const place = await home();
    const script = await place.ok("completion", "bash");
    const probe = `${script}\nCOMP_WORDS=(agent rules ""); COMP_CWORD=2; _agent; echo "\${COMPREPLY[@]}"`;
    const { stdout } = await run("bash", ["-c", probe]);
    assert.match(stdout, /list pause resume diff/);
    await place.write("agent.fish", await place.ok("completion", "fish"));
    const inFish = async (line: string): Promise<string[]> => {
      const asked = `source ${join(place.path, "agent.fish")}; complete -C ${JSON.stringify(line)}`;
      const fish = await run("fish", ["--no-config", "-c", asked], { env: place.env });
      return fish.stdout.split("\n").map((offer) => offer.split("\t", 1)[0] ?? "");
    };
    assert.ok((await inFish("agent rules p")).includes("pause"));
    assert.ok((await inFish("agent --config x ru")).includes("rules"));
    assert.ok((await inFish("agent --log-level d")).includes("debug"));
    assert.ok(!(await inFish("agent secrets list --")).includes("--replace"), "an option of another command");
  });
});
