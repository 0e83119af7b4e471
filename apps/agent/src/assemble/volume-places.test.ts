import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { parseConfig } from "../config/load.ts";
import type { DockerStatus } from "../docker-view.ts";
import { findPlaces } from "../agent-files/places.ts";
import { volumeStatus } from "./volume-places.ts";

const EXPECTED = "unix:///run/user/7/daemon/docker.sock";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "docker-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function look(section = ""): Promise<DockerStatus | undefined> {
  const config = parseConfig({ path: "c.yaml", text: `store: {driver: embedded}\n${section}` });
  const environment = {
    HOME: join(folder, "home"),
    XDG_RUNTIME_DIR: "/run/user/7",
    AGENT_DOCKER_PLUGINS: join(folder, "docker"),
    AGENT_PODMAN_CONFIG: join(folder, "podman"),
  };
  return volumeStatus({ places: findPlaces(environment), environment }, config);
}

async function write(path: string, text: string): Promise<string> {
  const file = join(folder, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
  return file;
}

describe("the Docker Volumes block without a daemon", () => {
  it("is not there with the section off and no registration file [agent 9.5]", async () => {
    assert.equal(await look(), undefined);
  });

  it("reports path, expected line, and whether the file has it or another socket [agent 9.4]", async () => {
    const path = await write("docker/daemon.spec", `${EXPECTED}\n`);
    assert.deepEqual(await look(), {
      enabled: false,
      socket: "/run/user/7/daemon/docker.sock",
      volume_dir: "/run/user/7/daemon/volumes",
      next_volume_dir: null,
      registrations: [{ engine: "docker", path, expected: EXPECTED, state: "agrees" }],
      volumes: [],
      error: null,
    });
    for (const other of ["unix:///run/other.sock\n", "tcp://127.0.0.1:1\n", "", `\n${EXPECTED}`]) {
      await write("docker/daemon.spec", other);
      assert.equal(
        (await look())?.registrations[0]?.state,
        "names a different socket",
        JSON.stringify(other),
      );
    }
  });

  it("shows every place with a registration file while the section is off", async () => {
    const podman = '[engine.volume_plugins]\ndaemon = "/run/user/7/daemon/docker.sock"\n';
    const files = [
      await write("docker/daemon.spec", EXPECTED),
      await write("home/.config/docker/plugins/daemon.spec", EXPECTED),
      await write("podman/daemon.conf", podman),
      await write("home/.config/containers/containers.conf.d/daemon.conf", podman.replace("/7/", "/8/")),
    ];
    const seen = await look();
    assert.deepEqual(
      seen?.registrations.map(({ path, state }) => [path, state]),
      files.map((path, index) => [path, index === 3 ? "names a different socket" : "agrees"]),
    );
  });

  it("names the file that Docker reads while the section is on and there is none", async () => {
    const seen = await look("docker: { enabled: true }\n");
    assert.deepEqual(seen?.registrations, [
      { engine: "docker", path: join(folder, "docker/daemon.spec"), expected: EXPECTED, state: "absent" },
    ]);
  });

  it("expects the socket of docker.socket", async () => {
    await write("docker/daemon.spec", `unix://${folder}/home/volumes.sock`);
    const seen = await look("docker: { socket: ~/volumes.sock }\n");
    assert.equal(seen?.registrations[0]?.state, "agrees");
  });
});
