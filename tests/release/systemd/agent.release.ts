import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { until } from "@devplat/testkit";
import type { Machine } from "../machine/machine.ts";
import { bootWith } from "../machine/programs.ts";

const UNIT = "agent.service";

describe("agent as a service of an ordinary user", () => {
  let machine: Machine;
  before(async () => {
    machine = await bootWith("agent");
    await machine.sh(
      `cp /usr/lib/units/user/* /etc/systemd/user/
       mkdir -p /etc/systemd/user/agent.service.d
       printf '[Service]\\nWatchdogSec=3s\\n' >/etc/systemd/user/agent.service.d/test.conf`,
    );
    await machine.addUser();
    await machine.sh(
      "agent init --mount; printf 'api: {enabled: true}\\n' >>~/.config/daemon/config.yaml",
      "user",
    );
  });
  after(async () => machine?.stop());

  const systemctl = async (...args: readonly string[]): Promise<string> =>
    machine.must(["systemctl", "--user", ...args], { account: "user" });
  const property = async (name: string): Promise<string> => machine.property(UNIT, name, "user");
  const processId = async (): Promise<string> => {
    const pid = await property("MainPID");
    assert.notEqual(pid, "0", await machine.journal(UNIT, "user"));
    return pid;
  };

  it("is started when it serves, and mounts by the unit that may run fusermount3", async () => {
    await systemctl("enable", "--now", "agent-mount.socket", "agent-api.socket", UNIT);
    assert.match(await property("StatusText"), /rules/);
    assert.equal(await machine.sh(`grep NoNewPrivs /proc/${await processId()}/status`), "NoNewPrivs:\t1");
    await machine.sh("echo s3cret | agent secrets put tools/npm token=-", "user");
    await until(async () => (await machine.sh("cat ~/.daemon/tools/npm.json", "user")).includes("s3cret"));
  });

  it("reloads its configuration, and refuses a faulty one", async () => {
    const first = await processId();
    await systemctl("reload", UNIT);
    await machine.sh(
      "cp ~/.config/daemon/config.yaml ~/kept; echo 'nonsense: 1' >>~/.config/daemon/config.yaml",
      "user",
    );
    const refused = await machine.exec(["systemctl", "--user", "reload", UNIT], { account: "user" });
    assert.notEqual(refused.code, 0);
    await machine.sh("cp ~/kept ~/.config/daemon/config.yaml", "user");
    assert.equal(await processId(), first);
  });

  it("is restarted by the watchdog when its process is frozen, and its mount is back", async () => {
    const first = await processId();
    await machine.must(["kill", "-STOP", first]);
    await until(
      async () => (await property("NRestarts")) === "1" && (await property("ActiveState")) === "active",
    );
    assert.notEqual(await processId(), first);
    await until(async () => (await machine.sh("cat ~/.daemon/tools/npm.json", "user")).includes("s3cret"));
  });

  it("is started by the first request to its API socket", async () => {
    await systemctl("stop", UNIT);
    const status = await machine.sh(
      "curl -sSf --unix-socket $XDG_RUNTIME_DIR/daemon/api.sock http://localhost/api/v1/status",
      "user",
    );
    assert.match(status, /"store"/);
    await until(async () => (await property("ActiveState")) === "active");
  });
});
