import assert from "node:assert/strict";
import { existsSync, mkdtempSync } from "node:fs";
import { readFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { VolumesStand } from "./agent-volumes-stand.ts";

const TIMEOUT_MS = 120_000;
const SECRET = "demo/registry.json";

describe("docker.volume_dir", { timeout: TIMEOUT_MS }, () => {
  it("moves at a reload when no container has a volume, and status says so until then [agent 37.19]", async (context) => {
    const stand = await VolumesStand.make();
    context.after(() => stand.remove());
    const memory = mkdtempSync("/dev/shm/volumes-move-");
    context.after(() => rm(memory, { recursive: true, force: true }));
    const next = join(memory, "volumes");
    const configure = (more: string): Promise<void> =>
      stand.configure("{ driver: embedded }", `{ enabled: true, paths: [demo/]${more} }`);
    await configure("");
    await stand.put("demo/registry", "password=kept");
    await stand.start();
    await stand.ok("/VolumeDriver.Create", { Name: "app", Opts: { secrets: "demo/" } });
    await stand.ok("/VolumeDriver.Mount", { Name: "app", ID: "1" });

    await configure(`, volume_dir: ${next}`);
    await stand.home.ok("reload");
    const places = async (): Promise<unknown[]> => {
      const status = await stand.status();
      return [status.volume_dir, status.next_volume_dir];
    };
    assert.deepEqual(await places(), [stand.volume("").replace(/\/$/, ""), next]);
    assert.match(
      await stand.home.ok("status"),
      new RegExp(`Next folder: {3}${next}: remove the containers that have volumes, then run 'agent reload'`),
    );
    // Neither another reload nor another start takes files away from a container.
    await stand.home.ok("reload");
    await stand.stop();
    await stand.start();
    assert.equal((await places())[1], next);
    assert.match(await readFile(stand.volume(`app/${SECRET}`), "utf8"), /kept/);
    assert.equal(existsSync(next), false);

    await stand.ok("/VolumeDriver.Unmount", { Name: "app", ID: "1" });
    await stand.home.ok("reload");
    assert.deepEqual(await places(), [next, null]);
    assert.doesNotMatch(await stand.home.ok("status"), /Next folder/);
    await stand.ok("/VolumeDriver.Mount", { Name: "app", ID: "2" });
    assert.match(await readFile(join(next, "app", SECRET), "utf8"), /kept/);
    assert.deepEqual(await readdir(stand.volume("")), [".volumes-of-agent"]);
    await stand.ok("/VolumeDriver.Unmount", { Name: "app", ID: "2" });
  });
});
