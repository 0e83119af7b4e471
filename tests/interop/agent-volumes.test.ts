import assert from "node:assert/strict";
import { access, readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  BOX_IMAGE,
  run,
  startDockerd,
  startPodman,
  until,
  type ContainerEngine,
  type Dockerd,
} from "@devplat/testkit";
import { VolumesStand } from "./agent-volumes-stand.ts";

/*
 * Container volumes of a real daemon, with a real dockerd and a real Podman. Both run as root.
 */

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
/** Values of the secrets, which no log and no file on a disk may have. */
const FIRST = "planted-first-value";
const SECOND = "planted-second-value";

let docker: Dockerd;
let podman: ContainerEngine;
let stand: VolumesStand;

/** Runs a command in a new container with the volume. */
function inBox(engine: ContainerEngine, volume: string, ...command: string[]): Promise<string> {
  const limits = engine === podman ? ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"] : [];
  return engine.ok(
    "run",
    "--rm",
    "--network",
    "none",
    ...limits,
    "-v",
    `${volume}:/run/secrets`,
    BOX_IMAGE,
    ...command,
  );
}

/** Starts a container that stays. */
async function startBox(name: string, volume: string, ...more: string[]): Promise<void> {
  await docker.ok(
    "run",
    "-d",
    "--name",
    name,
    "--network",
    "none",
    "-v",
    `${volume}:/run/secrets`,
    ...more,
    BOX_IMAGE,
    "sleep",
    "1000",
  );
}

async function refusal(engine: ContainerEngine, ...options: string[]): Promise<string> {
  const { code, stderr } = await engine.run(
    "volume",
    "create",
    "--driver",
    "daemon",
    ...options.flatMap((each) => ["-o", each]),
    "wrong",
  );
  assert.notEqual(code, 0, options.join(" "));
  return stderr;
}

before(async () => {
  docker = await startDockerd();
  podman = await startPodman();
  stand = await VolumesStand.make({ docker, podman });
  await stand.configure("{ driver: embedded }", "{ enabled: true, paths: [demo/], on_change: true }");
  stand.home.env["DOCKER_HOST"] = `unix://${docker.socket}`;
  await stand.put("demo/registry", "user=ada", `password=${FIRST}`);
  await stand.put("demo/deep/er", "key=x");
  await stand.put("private/key", "key=x");
  await stand.start();
});
after(async () => {
  await docker.stop();
  await podman.stop();
  await stand.remove();
});

describe("container volumes", { timeout: TIMEOUT_MS }, () => {
  it("are registered with Docker and Podman, and the files are shown first [agent 37.1]", async () => {
    const shown = await stand.home.agent(["docker", "register", "--system"]);
    assert.equal(shown.code, 1);
    assert.match(shown.stdout, /will write \S+daemon\.spec \(docker\):\n {4}unix:\/\/\S+docker\.sock\n/);
    assert.match(shown.stdout, /docker volume ls' waits for this socket/);
    assert.match(shown.stderr, /nothing was written without being asked/);
    const spec = join(docker.configuration, "plugins/daemon.spec");
    await assert.rejects(access(spec));
    await stand.home.ok("docker", "register", "--system", "--yes");
    assert.equal(await readFile(spec, "utf8"), `unix://${stand.socket}\n`);
    const { registrations } = await stand.status();
    assert.deepEqual(
      registrations.map(({ engine, state }) => [engine, state]),
      [
        ["docker", "agrees"],
        ["podman", "agrees"],
      ],
    );
  });

  it("give Docker and Podman a secret that docker.paths allows [agent 37.2]", async () => {
    for (const [engine, name] of [
      [docker, "app"],
      [podman, "pod"],
    ] as const) {
      assert.equal(
        await engine.ok("volume", "create", "--driver", "daemon", "-o", "secrets=demo/registry", name),
        name,
      );
      const text = await inBox(engine, name, "cat", "/run/secrets/demo/registry.json");
      assert.deepEqual(JSON.parse(text), { user: "ada", password: FIRST });
      assert.match(await refusal(engine, "secrets=private/key"), /volumes may not have "private\/key"/);
    }
    assert.match(await docker.ok("volume", "ls"), /daemon +app/);
    assert.match(await podman.ok("volume", "ls"), /daemon +pod/);
  });

  it("refuse wrong and unknown options by name [agent 37.3]", async () => {
    const wrong: [string[], RegExp][] = [
      [["layout=json"], /option secrets is missing/],
      [["secrets=/"], /option secrets cannot be \/ alone/],
      [["secrets=demo/../private/key"], /option secrets is not a list of paths/],
      [["secrets=demo/registry", "layout=both"], /option layout is neither/],
      [["secrets=demo/registry", "mode=0644"], /option mode may have read bits only/],
      [["secrets=demo/registry", "uid=ada"], /option uid is not a number/],
      [["secrets=demo/registry", "ttl=1h"], /option ttl must be from 1s to 10m/],
      [["secrets=demo/registry", "colour=red"], /no volume option \\?"colour/],
    ];
    for (const [options, message] of wrong) {
      for (const engine of [docker, podman]) assert.match(await refusal(engine, ...options), message);
    }
    assert.match(await refusal(podman, "secrets=demo/registry", "gid=-1"), /option gid is not a number/);
  });

  it("have the layout, mode and owner of their options [agent 37.4]", async () => {
    const options = ["secrets=demo/", "layout=fields", "mode=0440", "uid=4711", "gid=4712", "ttl=5s"];
    await docker.ok(
      "volume",
      "create",
      "--driver",
      "daemon",
      ...options.flatMap((each) => ["-o", each]),
      "fields",
    );
    await startBox("fields-box", "fields", "--user", "5000:4712");
    const shown = await docker.ok(
      "exec",
      "fields-box",
      "cat",
      "/run/secrets/demo/registry/password",
      "/run/secrets/demo/deep/er/key",
    );
    assert.equal(shown, `${FIRST}x`);
    const found = await stat(stand.volume("fields/demo/registry/password"));
    assert.deepEqual([found.mode & 0o7777, found.uid, found.gid], [0o440, 4711, 4712]);
    const other = await docker.run("exec", "--user", "5000:5000", "fields-box", "ls", "/run/secrets");
    assert.notEqual(other.code, 0);
    await docker.ok("rm", "-f", "fields-box");
  });

  it("follow a change, and are wiped by the last unmount [agent 37.5]", async () => {
    await startBox("one", "app");
    await startBox("two", "app");
    assert.deepEqual(await stand.volumeStatus("app"), {
      name: "app",
      mounts: 2,
      secrets: 1,
      paths: ["demo/registry"],
      layout: "json",
      refresh: "events",
      error: null,
    });
    await stand.put("demo/registry", `password=${SECOND}`);
    for (const box of ["one", "two"]) {
      await until(async () =>
        (await docker.ok("exec", box, "cat", "/run/secrets/demo/registry.json")).includes(SECOND),
      );
    }
    await docker.ok("rm", "-f", "one");
    assert.equal((await stand.volumeStatus("app")).mounts, 1);
    assert.match(await readFile(stand.volume("app/demo/registry.json"), "utf8"), new RegExp(SECOND));
    await docker.ok("rm", "-f", "two");
    assert.deepEqual(await readdir(stand.volume("")), [".volumes-of-agent"]);
    assert.equal((await stand.volumeStatus("app")).mounts, 0);
  });

  it("tell containers with a label: by restart, signal and command [agent 37.6]", async () => {
    const label = (value: string): string[] => ["--label", `daemon.on-change=${value}`];
    await startBox("restarted", "app", ...label("restart"));
    await startBox("told", "app", ...label("exec:cat /run/secrets/demo/registry.json > /seen"));
    const trap = "trap 'touch /hup' HUP; touch /ready; while :; do sleep 1; done";
    await docker.ok(
      "run",
      "-d",
      "--name",
      "signalled",
      "--network",
      "none",
      "-v",
      "app:/run/secrets",
      ...label("signal:HUP"),
      BOX_IMAGE,
      "sh",
      "-c",
      trap,
    );
    await until(async () => (await docker.run("exec", "signalled", "ls", "/ready")).code === 0);
    const startedAt = (): Promise<string> => docker.ok("inspect", "-f", "{{.State.StartedAt}}", "restarted");
    const started = await startedAt();
    await stand.put("demo/registry", `password=${FIRST}`);
    await until(async () => (await docker.ok("exec", "told", "cat", "/seen")).includes(FIRST));
    await until(async () => (await docker.run("exec", "signalled", "ls", "/hup")).code === 0);
    await until(async () => (await startedAt()) !== started);
    assert.match(
      await docker.ok("exec", "restarted", "cat", "/run/secrets/demo/registry.json"),
      new RegExp(FIRST),
    );
    await docker.ok("rm", "-f", "restarted", "told", "signalled");
  });

  it("stay through restarts of the daemon, and continue [agent 37.7]", async () => {
    await startBox("kept", "app");
    const version = await docker.ok("exec", "kept", "readlink", "/run/secrets/..data");
    await stand.stop();
    assert.match(
      await docker.ok("exec", "kept", "cat", "/run/secrets/demo/registry.json"),
      new RegExp(FIRST),
    );
    await stand.start();
    await until(async () => (await stand.volumeStatus("app")).secrets === 1);
    // Without a change nothing is written.
    assert.equal(await docker.ok("exec", "kept", "readlink", "/run/secrets/..data"), version);
    await stand.kill();
    await stand.start();
    await stand.put("demo/registry", `password=${SECOND}`);
    await until(async () =>
      (await docker.ok("exec", "kept", "cat", "/run/secrets/demo/registry.json")).includes(SECOND),
    );
    await docker.ok("rm", "-f", "kept");
    assert.deepEqual(await readdir(stand.volume("")), [".volumes-of-agent"]);
  });

  it("are released when an engine that was killed has forgotten its mounts [agent 37.8]", async () => {
    await startBox("lost", "app");
    assert.equal((await stand.call("/VolumeDriver.Mount", { Name: "app", ID: "of-nobody" })).status, 200);
    await docker.ok("rm", "-f", "lost");
    assert.equal((await stand.volumeStatus("app")).mounts, 1);
    const { code, stderr } = await docker.run("volume", "rm", "app");
    assert.equal(code, 1);
    assert.match(stderr, /agent docker release app/);
    assert.match(await stand.home.ok("docker", "release", "app"), /released app: 1 mounts dropped/);
    assert.deepEqual(await readdir(stand.volume("")), [".volumes-of-agent"]);
    const unknown = await stand.home.agent(["docker", "release", "absent"]);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /There is no volume of this name/);
  });

  it("start with either the engine or the daemon first [agent 37.9]", async () => {
    await docker.pause();
    await stand.stop();
    await docker.resume();
    await stand.start();
    assert.match(await inBox(docker, "app", "cat", "/run/secrets/demo/registry.json"), new RegExp(SECOND));
    await docker.pause();
    await docker.resume();
    assert.match(await inBox(docker, "app", "cat", "/run/secrets/demo/registry.json"), new RegExp(SECOND));
  });

  it("are out of reach for another user [agent 37.10]", async () => {
    const args = [
      "--reuid",
      "4713",
      "--clear-groups",
      "curl",
      "--silent",
      "--unix-socket",
      stand.socket,
      "-X",
      "POST",
      "http://localhost/Plugin.Activate",
    ];
    assert.notEqual((await run("setpriv", args)).code, 0);
    await startBox("guarded", "app");
    const file = stand.volume("app/demo/registry.json");
    assert.notEqual((await run("setpriv", ["--reuid", "4713", "--clear-groups", "cat", file])).code, 0);
    await docker.ok("rm", "-f", "guarded");
  });

  it("are refused for paths that are no longer allowed, and doctor reports them [agent 37.11]", async () => {
    await startBox("denied", "app");
    await stand.configure("{ driver: embedded }", "{ enabled: true, paths: [] }");
    await stand.home.ok("reload");
    await until(async () => (await stand.volumeStatus("app")).error?.includes("volumes may not have"));
    assert.match((await stand.home.agent(["doctor"])).stdout, /volume app.*volumes may not have/);
    assert.match(await stand.home.ok("status"), /app +1 +1 +events +volumes may not have/);
    await docker.ok("rm", "-f", "denied");
  });

  it("leave no value in logs and in the state", async () => {
    const found = await run("grep", ["-rlE", `${FIRST}|${SECOND}`, join(stand.home.path, ".local/state")]);
    assert.equal(found.stdout, "");
    assert.doesNotMatch(stand.agent.log(), /planted/);
    assert.doesNotMatch(docker.output(), /planted/);
  });
});
