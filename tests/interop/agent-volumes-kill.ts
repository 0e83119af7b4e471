import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { BOX_IMAGE, startDockerd, until, type Dockerd } from "@devplat/testkit";
import { VolumesStand } from "./agent-volumes-stand.ts";

const VALUE = "planted-value";
const SECRETS = 8;
/** Kills come up to this time after the begin of a call: about twice as long as the call takes. In milliseconds. */
const CALL_MS = 60;
const COMMAND_MS = { "docker run": 900, "docker rm": 400, "docker volume": 80 } as const;

/** The calls of the protocol, in the order in which they depend on each other. */
export const CALLS: readonly (readonly [name: string, body: object])[] = [
  ["/Plugin.Activate", {}],
  ["/VolumeDriver.Capabilities", {}],
  ["/VolumeDriver.Create", { Name: "killed", Opts: { secrets: "demo/" } }],
  ["/VolumeDriver.Get", { Name: "killed" }],
  ["/VolumeDriver.List", {}],
  ["/VolumeDriver.Path", { Name: "killed" }],
  ["/VolumeDriver.Mount", { Name: "killed", ID: "m" }],
  ["/VolumeDriver.Unmount", { Name: "killed", ID: "m" }],
  ["/VolumeDriver.Remove", { Name: "killed" }],
];

const BOX = ["--network", "none", "-v", "app:/run/secrets", BOX_IMAGE, "sleep", "1000"] as const;

/** Commands that make dockerd send the calls, in the order in which they depend on each other. */
export const COMMANDS: readonly (readonly [kind: keyof typeof COMMAND_MS, ...string[]])[] = [
  ["docker volume", "create", "--driver", "daemon", "-o", "secrets=demo/", "app"],
  ["docker volume", "inspect", "app"],
  ["docker volume", "ls"],
  // The next dockerd ends the container, and waits this long before it uses SIGKILL.
  ["docker run", "-d", "--stop-timeout", "1", "--name", "box", ...BOX],
  ["docker rm", "-f", "box"],
  ["docker volume", "rm", "app"],
];

/** A daemon and a dockerd that are killed at random points of a call. */
export class KillStand {
  readonly docker: Dockerd;
  readonly stand: VolumesStand;
  readonly #random: () => number;

  private constructor(docker: Dockerd, stand: VolumesStand, random: () => number) {
    this.docker = docker;
    this.stand = stand;
    this.#random = random;
  }

  static async start(random: () => number): Promise<KillStand> {
    const docker = await startDockerd();
    const stand = await VolumesStand.make({ docker });
    const made = new KillStand(docker, stand, random);
    try {
      await stand.configure("{ driver: embedded }", "{ enabled: true, paths: [demo/] }");
      const indexes = Array.from({ length: SECRETS }, (_, index) => index);
      await Promise.all(indexes.map((index) => stand.put(`demo/s${index}`, `password=${VALUE}`)));
      await stand.start();
      await stand.home.ok("docker", "register", "--system", "--yes");
      return made;
    } catch (error) {
      await made.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.docker.stop();
    await this.stand.remove();
  }

  /** Kills the daemon during a call of the plugin. @returns whether the call had been answered before */
  async assertKillOfDaemon([name, body]: (typeof CALLS)[number]): Promise<boolean> {
    const { stand } = this;
    const call = stand.call(name, body);
    await sleep(this.#random() * CALL_MS);
    await stand.kill();
    const isAnswered = (await call).status === 200;
    await stand.start();
    // dockerd repeats a call that got no response.
    const { status, text } = await stand.call(name, body);
    assert.equal(status, 200, text);
    const volume = (await stand.status()).volumes.find((each) => each.name === "killed");
    // A volume has all its files, or none and no folder.
    const names = (await readdir(stand.volume(""))).filter((each) => each === "killed");
    assert.equal(names.length, volume === undefined || volume.mounts === 0 ? 0 : 1);
    if (volume === undefined || volume.mounts === 0) return isAnswered;
    assert.equal(volume.mounts, 1);
    for (let index = 0; index < SECRETS; index++) {
      assert.match(await readFile(stand.volume(`killed/demo/s${index}.json`), "utf8"), new RegExp(VALUE));
    }
    return isAnswered;
  }

  /** Kills dockerd and its containerd during a command. @returns whether the command had succeeded before */
  async assertKillOfDockerd([kind, ...rest]: (typeof COMMANDS)[number]): Promise<boolean> {
    const { docker, stand } = this;
    const command = [...kind.split(" ").slice(1), ...rest];
    const under = docker.run(...command);
    await sleep(this.#random() * COMMAND_MS[kind]);
    await docker.kill();
    const isDone = (await under).code === 0;
    await docker.resume();
    await docker.run("rm", "-f", "box");
    await docker.run("volume", "create", "--driver", "daemon", "-o", "secrets=demo/", "app");
    const box = ["run", "--rm", "--network", "none", "-v", "app:/run/secrets", BOX_IMAGE];
    assert.match(await docker.ok(...box, "cat", `/run/secrets/demo/s${SECRETS - 1}.json`), new RegExp(VALUE));
    // A mount that dockerd has forgotten is dropped by hand.
    await stand.home.ok("docker", "release", "app");
    assert.equal(existsSync(stand.volume("app")), false);
    if (kind !== "docker run") return isDone;
    await docker.ok(...command);
    await until(async () => (await stand.volumeStatus("app")).mounts === 1);
    return isDone;
  }
}
