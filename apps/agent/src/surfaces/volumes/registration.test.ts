import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parseConfig } from "../../config/load.ts";
import type { DockerStatus } from "../../status.ts";
import { dockerStatus } from "./registration.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "docker-"));
});
after(() => rm(folder, { recursive: true, force: true }));

function look(section = ""): Promise<DockerStatus | undefined> {
  const config = parseConfig({ path: "c.yaml", text: `store: {driver: embedded}\n${section}` });
  return dockerStatus(
    config,
    { home: "/home/ada", runtime: "/run/user/7/daemon" },
    { AGENT_DOCKER_PLUGINS: folder },
  );
}

describe("the Docker Volumes block with the section disabled", () => {
  const path = (): string => join(folder, "daemon.spec");

  it("is not there without a registration file [agent 9.5]", async () => {
    assert.equal(await look(), undefined);
  });

  it("reports path, expected line, and whether the file has it or another socket [agent 9.4]", async () => {
    await writeFile(path(), "unix:///run/user/7/daemon/docker.sock\n");
    const expected = "unix:///run/user/7/daemon/docker.sock";
    assert.deepEqual(await look(), {
      enabled: false,
      socket: "/run/user/7/daemon/docker.sock",
      registration: { path: path(), expected, state: "agrees" },
    });
    for (const other of ["unix:///run/other.sock\n", "tcp://127.0.0.1:1\n", "", "\n" + expected]) {
      await writeFile(path(), other);
      assert.equal((await look())?.registration.state, "names a different socket", JSON.stringify(other));
    }
  });

  it("expects the socket of docker.socket", async () => {
    await writeFile(path(), "unix:///home/ada/volumes.sock");
    const seen = await look("docker: { socket: ~/volumes.sock }\n");
    assert.equal(seen?.registration.state, "agrees");
  });
});
