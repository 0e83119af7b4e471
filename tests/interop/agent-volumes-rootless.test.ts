import assert from "node:assert/strict";
import { mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  BOX_IMAGE,
  run,
  startOrdinaryUser,
  startRootlessDockerd,
  startRootlessPodman,
  until,
  type ContainerEngine,
  type OrdinaryUser,
} from "@devplat/testkit";
import { assertLinksHarmless, SECRET } from "./agent-volumes-links.ts";
import { VolumesStand } from "./agent-volumes-stand.ts";

/*
 * Container volumes of a daemon that an ordinary user runs, with this user's own dockerd (RootlessKit) and Podman.
 */

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
const FIRST = "planted-first-value";
const SECOND = "planted-second-value";

let user: OrdinaryUser;
let docker: ContainerEngine;
let podman: ContainerEngine;
let stand: VolumesStand;

before(async () => {
  user = await startOrdinaryUser();
  docker = await startRootlessDockerd(user);
  podman = await startRootlessPodman(user);
  stand = await VolumesStand.ofUser(user);
  await stand.configure("{ driver: embedded }", "{ enabled: true }");
  await stand.put("demo/registry", "user=ada", `password=${FIRST}`);
  await stand.start();
});
after(async () => {
  await stand.stop();
  await podman.stop();
  await docker.stop();
  await user.stop();
});

const create = (engine: ContainerEngine, name: string, ...options: string[]): Promise<string> =>
  engine.ok(
    "volume",
    "create",
    "--driver",
    "daemon",
    ...["secrets=demo/registry", ...options].flatMap((each) => ["-o", each]),
    name,
  );
/** Arguments of `run` for a container with the volume. */
const box = (volume: string, ...more: string[]): string[] => [
  "run",
  "--network",
  "none",
  "-v",
  `${volume}:/run/secrets`,
  ...more,
];

describe("container volumes of an ordinary user", { timeout: TIMEOUT_MS }, () => {
  it("are registered in the user's own files [agent 37.12]", async () => {
    const shown = await stand.home.ok("docker", "register", "--yes");
    const spec = join(user.home, ".config/docker/plugins/daemon.spec");
    const part = join(user.home, ".config/containers/containers.conf.d/daemon.conf");
    for (const path of [spec, part]) {
      assert.ok(shown.includes(`will write ${path} (`), shown);
      const found = await stat(path);
      assert.deepEqual([found.uid, found.mode & 0o777], [user.uid, 0o644]);
    }
    assert.equal(await readFile(spec, "utf8"), `unix://${stand.socket}\n`);
    assert.ok((await readFile(part, "utf8")).includes(`daemon = "${stand.socket}"\n`));
    assert.deepEqual(
      (await stand.status()).registrations.map(({ engine, state }) => [engine, state]),
      [
        ["docker-rootless", "agrees"],
        ["podman-rootless", "agrees"],
      ],
    );
  });

  it("are registered for the whole host by the command that is shown [agent 37.12]", async () => {
    const refused = await stand.home.agent(["docker", "register", "--system", "--yes"]);
    assert.equal(refused.code, 1);
    const [, command = ""] = /As root, run: (sudo mkdir.*)$/m.exec(refused.stderr) ?? [];
    assert.match(command, /daemon\.spec$/, refused.stderr);
    // Debian's 20.10 looks in /etc/docker in rootless mode, too.
    const done = await user.asRoot("sh", "-c", `sudo() { "$@"; }; ${command}`);
    assert.equal(done.code, 0, done.stderr);
    const written = await user.run("cat", "/etc/docker/plugins/daemon.spec");
    assert.equal(written.stdout, `unix://${stand.socket}\n`);
  });

  it("give both engines a secret without docker.paths, and follow a change [agent 37.13]", async () => {
    const engines: [ContainerEngine, string][] = [
      [docker, "app"],
      [podman, "pod"],
    ];
    for (const [engine, name] of engines) {
      await create(engine, name);
      assert.match(await engine.ok(...box(name, "--rm", BOX_IMAGE, "cat", SECRET)), new RegExp(FIRST));
      await engine.ok(...box(name, "-d", "--name", `${name}-box`, BOX_IMAGE, "sleep", "1000"));
      const found = await stat(stand.volume(`${name}/demo/registry.json`));
      assert.deepEqual([found.uid, found.mode & 0o7777], [user.uid, 0o400]);
    }
    await stand.put("demo/registry", `password=${SECOND}`);
    for (const [engine, name] of engines) {
      await until(async () => (await engine.ok("exec", `${name}-box`, "cat", SECRET)).includes(SECOND));
      // Podman's rm -f waits 10 s for a process that ignores SIGTERM, as the first one of a container does.
      await engine.ok("kill", `${name}-box`);
      await engine.ok("rm", "-f", `${name}-box`);
    }
    assert.deepEqual(await readdir(stand.volume("")), [".volumes-of-agent"]);
  });

  it("refuse uid and gid by name, and mode=0444 serves a container of another user [agent 37.14]", async () => {
    for (const engine of [docker, podman]) {
      for (const option of ["uid", "gid"]) {
        const args = ["volume", "create", "--driver", "daemon", "-o", "secrets=demo/registry"];
        const { code, stderr } = await engine.run(...args, "-o", `${option}=1000`, "wrong");
        assert.notEqual(code, 0);
        assert.match(stderr, new RegExp(`option ${option} needs a daemon that runs as root.*mode=0444`, "s"));
      }
      await create(engine, "narrow");
      await create(engine, "wide", "mode=0444");
      const read = ["--rm", "--user", "1000:1000", BOX_IMAGE, "cat", SECRET];
      assert.notEqual((await engine.run(...box("narrow", ...read))).code, 0);
      assert.match(await engine.ok(...box("wide", ...read)), new RegExp(SECOND));
      await engine.ok("volume", "rm", "narrow", "wide");
    }
  });

  it("are refused to an engine that runs as root until docker.paths allows them [agent 37.2]", async () => {
    // curl runs as root, as such an engine does.
    const wanted = { Name: "rootful", Opts: { secrets: "demo/registry" } };
    const refused = await stand.call("/VolumeDriver.Create", wanted);
    assert.equal(refused.status, 500);
    assert.match(refused.text, /volumes may not have .*demo\/registry/);
    const mounted = await stand.call("/VolumeDriver.Mount", { Name: "app", ID: "of-root" });
    assert.match(mounted.text, /volumes may not have/);
  });

  it("lead no write out of the volume, though the container has the daemon's own uid [agent 37.15]", async () => {
    const precious = join(user.home, "precious");
    await mkdir(precious);
    await writeFile(join(precious, "file"), "kept");
    assert.equal((await run("chown", ["-R", String(user.uid), precious])).code, 0);
    await docker.ok(...box("app", "-d", "--name", "hostile", BOX_IMAGE, "sleep", "1000"));
    await assertLinksHarmless(stand, docker, precious, [FIRST, SECOND]);
  });
});
