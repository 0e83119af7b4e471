import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, it } from "node:test";
import { until } from "@devplat/testkit";
import { mountStand, quick, type MountStand } from "./agent-mount-stand.ts";

const TIMEOUT_MS = 480_000;
const FUSE = "read_write: true, cache_ttl: 5m";

describe("the end of a mount with files that are only in memory", { timeout: TIMEOUT_MS }, () => {
  let stand: MountStand;
  beforeEach(async () => {
    stand = await mountStand("agent-mount-writing-life", FUSE);
  });
  afterEach(() => stand.remove());

  const write = async (script: string): Promise<void> => {
    const { stderr, code } = await quick("bash", "-c", `cd '${stand.at("demo")}' && ${script}`);
    assert.equal(`${code}${stderr}`, "0");
  };

  it("stores new files when the daemon ends, and names those that are refused [agent 38.19]", async () => {
    await write(`echo '{"n": 1}' > new.json; echo 'no json' > bad.json`);
    assert.equal(await stand.agent.stop(), 0);
    assert.deepEqual(await stand.stored("demo/new"), { n: 1 });
    assert.equal(await stand.stored("demo/bad"), undefined);
    assert.match(stand.agent.log(), /"path":"demo\/\.bad\.json\.rejected".*is gone with the mount/);
    await stand.start();
  });

  it("stores new files after agent unmount, and after umount [agent 38.19]", async () => {
    await write(`echo '{"n": 2}' > new.json`);
    await stand.place.ok("unmount");
    await until(
      async () => (await stand.stored("demo/new")) !== undefined,
      () => "the file is not stored",
    );
    assert.deepEqual(await stand.stored("demo/new"), { n: 2 });
  });

  it("refuses an unmount that would lose a text, and names it [agent 38.19]", async () => {
    await write(`echo 'no json' > bad.json; echo '{"n": 3}' > new.json`);
    const refused = await stand.place.agent(["unmount"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /would lose what is not stored: demo\/\.bad\.json\.rejected/);
    assert.match(refused.stderr, /Copy it out of the mount, or remove it there/);
    assert.deepEqual(await stand.stored("demo/new"), { n: 3 });
    assert.equal(await readFile(stand.at("demo/.bad.json.rejected"), "utf8"), "no json\n");
    await write("rm .bad.json.rejected");
    await stand.place.ok("unmount");
    await stand.place.ok("mount");
    await write(`echo 'no json' > bad.json; until [ -e .bad.json.rejected ]; do sleep 0.05; done`);
    await stand.place.ok("unmount", "--lazy");
    // The lines of the log come by a pipe of their own.
    await until(
      async () => /"path":"demo\/\.bad\.json\.rejected".*is gone with the mount/.test(stand.agent.log()),
      () => stand.agent.log(),
    );
  });

  it("stores new files when read_write is turned off by a reload [agent 38.19]", async () => {
    await write(`echo '{"n": 3}' > new.json`);
    const config = await readFile(`${stand.place.path}/.config/daemon/config.yaml`, "utf8");
    await stand.place.configure(config.replace("read_write: true", "read_write: false"));
    await stand.place.ok("reload");
    await until(
      async () => (await quick("stat", "-c", "%a", stand.at("demo/new.json"))).stdout === "400\n",
      () => stand.agent.log(),
    );
    assert.deepEqual(await stand.stored("demo/new"), { n: 3 });
    assert.match(
      (await quick("bash", "-c", `echo '{}' > '${stand.at("demo/new.json")}'`)).stderr,
      /Read-only file system/,
    );
    assert.match(await stand.place.ok("status"), /Access: +read-only/);
    await stand.place.configure(config);
    await stand.place.ok("reload");
    await until(
      async () => (await quick("bash", "-c", `echo '{"n": 4}' > '${stand.at("demo/new.json")}'`)).code === 0,
      () => stand.agent.log(),
    );
    assert.deepEqual(await stand.stored("demo/new"), { n: 4 });
  });
});
