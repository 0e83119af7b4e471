import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { BOX_IMAGE, startDockerd, until, type Dockerd } from "@devplat/testkit";
import { VolumesStand } from "./agent-volumes-stand.ts";

/*
 * Container volumes when the daemon or dockerd is killed by SIGKILL during each of the nine calls of the protocol.
 */

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
const VALUE = "planted-value";

let docker: Dockerd;
let stand: VolumesStand;

before(async () => {
  docker = await startDockerd();
  stand = await VolumesStand.make({ docker });
  await stand.configure("{ driver: embedded }", "{ enabled: true, paths: [demo/] }");
  for (let index = 0; index < 20; index++) await stand.put(`demo/s${index}`, `password=${VALUE}`);
  await stand.start();
  await stand.home.ok("docker", "register", "--system", "--yes");
});
after(async () => {
  await docker.stop();
  await stand.remove();
});

/** The calls of the protocol, in the order in which they depend on each other. */
const CALLS: readonly { name: string; body: object; prepare?: readonly [string, object][] }[] = [
  { name: "/Plugin.Activate", body: {} },
  { name: "/VolumeDriver.Capabilities", body: {} },
  { name: "/VolumeDriver.Create", body: { Name: "killed", Opts: { secrets: "demo/" } } },
  { name: "/VolumeDriver.Get", body: { Name: "killed" } },
  { name: "/VolumeDriver.List", body: {} },
  { name: "/VolumeDriver.Path", body: { Name: "killed" } },
  { name: "/VolumeDriver.Mount", body: { Name: "killed", ID: "m" } },
  { name: "/VolumeDriver.Unmount", body: { Name: "killed", ID: "m" } },
  { name: "/VolumeDriver.Remove", body: { Name: "killed" } },
];

describe("a kill -9 of the daemon", { timeout: TIMEOUT_MS }, () => {
  for (const { name, body } of CALLS) {
    it(`during ${name} leaves a state with which the same call succeeds`, async () => {
      // The call is under way: what it has done at the kill is left to chance, and each outcome has to be fine.
      const call = stand.call(name, body);
      await stand.kill();
      await call;
      await stand.start();
      // dockerd repeats a call that got no response.
      const { status, text } = await stand.call(name, body);
      assert.equal(status, 200, text);
      const volume = (await stand.status()).volumes.find((each) => each.name === "killed");
      // A volume has all its files, or none and no folder.
      const names = (await readdir(stand.volume(""))).filter((each) => each === "killed");
      assert.equal(names.length, volume === undefined || volume.mounts === 0 ? 0 : 1);
      if (volume === undefined || volume.mounts === 0) return;
      assert.equal(volume.mounts, 1);
      for (let index = 0; index < 20; index++) {
        assert.match(await readFile(stand.volume(`killed/demo/s${index}.json`), "utf8"), new RegExp(VALUE));
      }
    });
  }
});

describe("a kill -9 of dockerd", { timeout: TIMEOUT_MS }, () => {
  const commands: readonly (readonly string[])[] = [
    ["volume", "create", "--driver", "daemon", "-o", "secrets=demo/", "app"],
    ["volume", "inspect", "app"],
    ["volume", "ls"],
    ["run", "-d", "--name", "box", "--network", "none", "-v", "app:/run/secrets", BOX_IMAGE, "sleep", "1000"],
    ["rm", "-f", "box"],
    ["volume", "rm", "app"],
  ];
  for (const command of commands) {
    it(`during docker ${command.slice(0, 2).join(" ")} leaves usable volumes`, async () => {
      const under = docker.run(...command);
      await docker.kill();
      await under;
      await docker.resume();
      await docker.run("rm", "-f", "box");
      await docker.run("volume", "create", "--driver", "daemon", "-o", "secrets=demo/", "app");
      const shown = await docker.ok(
        "run",
        "--rm",
        "--network",
        "none",
        "-v",
        "app:/run/secrets",
        BOX_IMAGE,
        "cat",
        "/run/secrets/demo/s7.json",
      );
      assert.match(shown, new RegExp(VALUE));
      // A mount that dockerd has forgotten is dropped by hand.
      await stand.home.ok("docker", "release", "app");
      assert.equal(existsSync(stand.volume("app")), false);
      if (command[0] !== "run") return;
      await docker.ok(...command);
      await until(async () => (await stand.volumeStatus("app")).mounts === 1);
    });
  }
});
