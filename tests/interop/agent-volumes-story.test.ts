import assert from "node:assert/strict";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  BOX_IMAGE,
  run,
  runAtTerminal,
  startDockerd,
  tempFolder,
  until,
  type Dockerd,
  type TempFolder,
} from "@devplat/testkit";
import { assertLinksHarmless, SECRET } from "./agent-volumes-links.ts";
import { VolumesStand } from "./agent-volumes-stand.ts";

/*
 * The first volume as the guide describes it, and a container that misuses its volume. The dockerd runs as root.
 */

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
const GUIDE = resolve(import.meta.dirname, "../../docs/agent/container-volumes.md");
const FIRST = "planted-first-value";
const SECOND = "planted-second-value";

/** Size of a file system for volumes, for tmpfs(5). */
const SMALL = "256k";

let docker: Dockerd;
let stand: VolumesStand;
let small: TempFolder;

before(async () => {
  small = await tempFolder("small");
  // Before dockerd starts, which sees no later mounts of this host.
  const options = ["-t", "tmpfs", "-o", `size=${SMALL},mode=700`, "tmpfs", small.path];
  assert.equal((await run("mount", options)).code, 0);
  docker = await startDockerd();
  stand = await VolumesStand.make({ docker });
});
after(async () => {
  await docker.stop();
  await stand.remove();
  await run("umount", ["-l", small.path]);
  await small.remove();
});

const config = (): string => join(stand.home.path, ".config/daemon/config.yaml");

describe("the first volume of a new user", { timeout: TIMEOUT_MS }, () => {
  it("goes from agent init to a changed secret in a running container [agent 37.17]", async () => {
    const guide = await readFile(GUIDE, "utf8");
    const [section = ""] = /^ {7}docker:\n(?: {9}.*\n)+/m.exec(guide) ?? [];
    const commands = [...guide.matchAll(/^ {7}\$ (.+)$/gm)].map(([, command = ""]) => command);
    assert.deepEqual(
      commands.map((command) => command.split(" ", 3).join(" ")),
      ["agent docker register", "agent secrets put", "docker volume create", "docker run --rm"],
    );
    const bin = join(stand.home.path, "bin");
    await mkdir(bin);
    await writeFile(join(bin, "agent"), `#!/bin/sh\nexec ${AGENT_LAUNCHER} "$@"\n`, { mode: 0o755 });
    const env = {
      ...stand.home.env,
      PATH: `${bin}:${process.env["PATH"] ?? ""}`,
      DOCKER_HOST: `unix://${docker.socket}`,
    };
    await docker.ok("tag", BOX_IMAGE, "busybox");
    const typed = async (command: string): Promise<string> => {
      const { code, shown } = await runAtTerminal("sh", ["-c", command], {
        env,
        answers: [[/\[y\/N\]|password/, command.includes("register") ? "y" : FIRST]],
      });
      assert.equal(code, 0, `${command}: ${shown}`);
      return shown;
    };

    await typed("agent init");
    // Another program may have the port of the starter configuration.
    const starter = (await readFile(config(), "utf8")).replace("127.0.0.1:8200", "127.0.0.1:0");
    await writeFile(config(), `${starter}\n${section.replaceAll(/^ {7}/gm, "")}`);
    await stand.start();
    let shown = "";
    for (const command of commands) shown = await typed(command);
    assert.match(shown, new RegExp(`"user": "ada",\\s+"password": "${FIRST}"`));

    await docker.ok("run", "-d", "--name", "box", "-v", "app:/run/secrets:ro", "busybox", "sleep", "1000");
    await typed(`agent secrets put demo/registry password=${SECOND}`);
    await until(async () => (await docker.ok("exec", "box", "cat", SECRET)).includes(SECOND));
    assert.match(
      (await docker.run("exec", "box", "touch", "/run/secrets/own")).stderr,
      /Read-only file system/,
    );
    // No value is where others look.
    for (const command of [
      ["inspect", "box"],
      ["volume", "inspect", "app"],
    ])
      assert.doesNotMatch(await docker.ok(...command), /planted/);
    await docker.ok("rm", "-f", "box");
    assert.deepEqual(await readdir(stand.volume("")), [".volumes-of-agent"]);
  });
});

describe("a container that misuses its volume", { timeout: TIMEOUT_MS }, () => {
  const inBox = (script: string): Promise<string> => docker.ok("exec", "hostile", "sh", "-c", script);
  const startHostile = (): Promise<string> =>
    docker.ok("run", "-d", "--name", "hostile", "-v", "app:/run/secrets", BOX_IMAGE, "sleep", "1000");

  it("leads no write of a root daemon out of it by links [agent 37.15]", async () => {
    const precious = join(stand.home.path, "precious");
    await mkdir(precious);
    await writeFile(join(precious, "file"), "kept");
    await startHostile();
    await assertLinksHarmless(stand, docker, precious, [FIRST, SECOND]);
  });

  it("keeps the last files while the volume's file system is full [agent 37.16]", async () => {
    const folder = join(small.path, "volumes");
    await stand.configure(
      "{ driver: embedded }",
      `{ enabled: true, paths: [demo/], volume_dir: ${folder}, cache_ttl: 1s }`,
    );
    await stand.home.ok("reload");
    await until(async () => (await stand.status()).volume_dir === folder);
    await startHostile();
    assert.match(await docker.ok("exec", "hostile", "cat", SECRET), new RegExp(SECOND));
    await inBox("cat /dev/zero > /run/secrets/fill; true");
    await stand.put("demo/registry", `password=${FIRST}`);
    await until(async () => (await stand.volumeStatus("app")).error?.includes("ENOSPC"));
    assert.match(await docker.ok("exec", "hostile", "cat", SECRET), new RegExp(SECOND));
    // A first mount of another volume is refused, and leaves nothing.
    await docker.ok("volume", "create", "-d", "daemon", "-o", "secrets=demo/", "other");
    const refused = await docker.run("run", "--rm", "-v", "other:/run/secrets", BOX_IMAGE, "true");
    assert.match(refused.stderr, /file system of docker\.volume_dir is full/);
    assert.deepEqual((await readdir(folder)).toSorted(), [".volumes-of-agent", "app"]);
    await inBox("rm /run/secrets/fill");
    await until(async () => (await docker.ok("exec", "hostile", "cat", SECRET)).includes(FIRST));
    await until(async () => (await stand.volumeStatus("app")).error === null);
    await docker.ok("rm", "-f", "hostile");
    assert.deepEqual(await readdir(folder), [".volumes-of-agent"]);
  });
});
