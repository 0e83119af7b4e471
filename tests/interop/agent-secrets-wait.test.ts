import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { AGENT_LAUNCHER, run, tempFolder, until, type TempFolder } from "@devplat/testkit";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";

const CONFIG = `
store: {driver: embedded}
api: {enabled: true}
rules:
  - name: token
    key: demo/registry
    target: {path: ~/registry.yaml, format: yaml, on_missing: remove, template: "token: {{ .token }}"}
  - name: other
    key: demo/other
    target: {path: ~/other.yaml, format: yaml, template: "other: {{ .token }}"}
  - name: both
    keys: {one: demo/registry}
    target: {path: ~/both.env, format: dotenv, template: "TOKEN={{ .one.token }}"}
`;

describe("a secret that is changed on the command line while a daemon runs", () => {
  let folder: TempFolder;
  let place: Home;
  let running: RunningAgent;
  before(async () => {
    folder = await tempFolder("agent-secrets-wait");
    place = new Home(folder.path);
    await place.configure(CONFIG);
    running = await daemon(place, async () => {
      const { stdout } = await place.agent(["status", "--json"]);
      return (JSON.parse(stdout) as { daemon: { running: boolean } }).daemon.running;
    });
  });
  after(async () => {
    await running.stop();
    await folder.remove();
  });

  /** As two lines pasted into one shell. */
  const shell = async (script: string): Promise<string> => {
    const { code, stdout, stderr } = await run("sh", ["-ec", script, AGENT_LAUNCHER], { env: place.env });
    assert.equal(code, 0, stderr);
    return stdout;
  };

  it("secrets put ends when its files are written, and names those that changed [agent 5.17]", async () => {
    for (let round = 0; round < 5; round++) {
      const shown = await shell(
        `"$0" secrets put demo/registry token=hello${round}; cat ~/registry.yaml ~/both.env`,
      );
      assert.equal(
        shown,
        `demo/registry: version ${round + 1}\n` +
          `${place.path}/registry.yaml: changed (rule token)\n${place.path}/both.env: changed (rule both)\n` +
          `token: hello${round}\nTOKEN='hello${round}'\n`,
      );
    }
  });

  it("says so when a file stays as it is, and when a rule fails", async () => {
    assert.match(
      await shell(`"$0" secrets put demo/registry token=hello4`),
      /registry\.yaml: unchanged \(rule token\)/,
    );
    const wrong = await place.agent(["secrets", "put", "demo/registry", "other=1", "--replace"]);
    assert.equal(wrong.code, 0, "the secret is stored");
    assert.match(wrong.stderr, /registry\.yaml: not written \(rule token\): .*token/);
  });

  it("--no-wait does not wait, and a secret without a rule has nothing to wait for", async () => {
    assert.equal(
      await place.ok("secrets", "put", "demo/other", "token=a", "--no-wait"),
      "demo/other: version 1\n",
    );
    assert.equal(await place.ok("secrets", "put", "demo/unused", "token=a"), "demo/unused: version 1\n");
  });

  it("secrets rm waits as well", async () => {
    await place.ok("secrets", "put", "demo/registry", "token=last");
    const shown = await shell(`"$0" secrets rm demo/registry --yes; cat ~/registry.yaml`);
    assert.match(shown, /^removed demo\/registry\n.*registry\.yaml: changed \(rule token\)\n/);
    assert.doesNotMatch(shown, /last/);
  });

  it("agent restore works next to the daemon once the rule is paused", async () => {
    const none = await place.agent(["restore", "late"]);
    assert.match(none.stderr, /there is no backup/);
    await place.write("late.yaml", "mine: 1\n");
    await place.configure(
      `${CONFIG}  - {name: late, key: demo/other, target: {path: ~/late.yaml, format: yaml}}\n`,
    );
    await place.agent(["reload"]);
    await until(async () => (await place.read("late.yaml")) !== "mine: 1\n");
    assert.match((await place.agent(["restore", "late"])).stderr, /'agent rules pause late' stops it/);
    await place.ok("rules", "pause", "late");
    await place.ok("restore", "late");
    assert.equal(await place.read("late.yaml"), "mine: 1\n");
    await place.ok("sync");
    assert.equal(await place.read("late.yaml"), "mine: 1\n", "and stays so");
  });

  it("without a daemon stores the secret, and names the files that wait for a sync", async () => {
    await running.stop();
    const { code, stdout, stderr } = await place.agent(["secrets", "put", "demo/other", "token=b"]);
    assert.equal(code, 0);
    assert.equal(stdout, "demo/other: version 2\n");
    assert.match(
      stderr,
      /other\.yaml: not written yet \(rule other\): no daemon answers; 'agent sync' writes it/,
    );
    await place.ok("sync");
    assert.equal(await place.read("other.yaml"), "other: b\n");
  });
});
