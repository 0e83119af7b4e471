import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startCodeHostProcess, until, type CodeHostProcess } from "@devplat/testkit";
import type { Machine } from "../machine/machine.ts";
import { bootWith } from "../machine/programs.ts";

/** Of `systemd-analyze security`: 0 is closed, and 10 is open. */
const MAX_EXPOSURE = 2.5;
const KEY = "ab".repeat(32);
const UNIT = "svc.service";

describe("svc as a service of systemd", () => {
  let machine: Machine;
  let host: CodeHostProcess;
  before(async () => {
    machine = await bootWith("svc");
    host = await startCodeHostProcess(machine.pid);
    await host.addRepository("acme", "app");
    await machine.write("/etc/svc/svc.yaml", settings());
    await machine.write("/etc/credstore/encryption.key", `${KEY}\n`, 0o600);
    await machine.write(
      "/etc/systemd/system/svc.service.d/test.conf",
      // Seconds, so that a test need not wait for a minute.
      "[Service]\nLoadCredential=encryption.key:/etc/credstore/encryption.key\nWatchdogSec=3s\n",
    );
    await machine.sh("systemctl daemon-reload");
  });
  after(async () => {
    await host?.stop();
    await machine?.stop();
  });

  const settings = (more = ""): string =>
    `server: {listen: "127.0.0.1:8080", base_url: "http://127.0.0.1:8080", drain_seconds: 3}\nhost: {url: "${host.url}", api_url: "${host.apiUrl}"}\ncache: {enabled: true}\ndev: {mode: true}\n${more}`;
  const processId = async (): Promise<string> => {
    const pid = await machine.property(UNIT, "MainPID");
    assert.notEqual(pid, "0", await machine.journal(UNIT));
    return pid;
  };
  const clone = async (): Promise<string> =>
    machine.sh(
      `rm -rf /tmp/app; git clone -q "http://127.0.0.1:8080/acme/app" /tmp/app; git -C /tmp/app rev-list --count HEAD`,
    );

  it("exposes little to a program that takes it over", async () => {
    const text = await machine.must([
      "systemd-analyze",
      "security",
      "--offline=true",
      "--no-pager",
      `/etc/systemd/system/${UNIT}`,
    ]);
    const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(text)?.[1]);
    assert.ok(exposure <= MAX_EXPOSURE, String(exposure));
    assert.match(text, /✗ MemoryDenyWriteExecute=/);
  });

  it("prepares its database, and is started when it serves a clone", async () => {
    await machine.must(["systemctl", "start", UNIT]);
    assert.match(await clone(), /^[1-9]\d*$/);
    assert.match(await machine.property(UNIT, "StatusText"), /^serves http:\/\/127\.0\.0\.1:8080$/);
    assert.match(await machine.journal(UNIT), /applied \S+/);
    assert.equal(await machine.sh("stat -c '%U %a' /var/lib/svc /var/lib/svc/svc.db"), "svc 750\nsvc 600");
  });

  it("fills its cache, under the restrictions of its unit", async () => {
    const post = (path: string, body: object, token = ""): string =>
      `curl -sSf -H 'content-type: application/json' -H 'authorization: Bearer ${token}' -d '${JSON.stringify(body)}' http://127.0.0.1:8080${path}`;
    const login = await machine.sh(post("/auth/test-login", { username: "ada", role: "admin" }));
    const { session_token: token } = JSON.parse(login) as { session_token: string };
    await machine.sh(post("/api/cached-repos", { owner: "acme", name: "app" }, token));
    await clone();
    await until(
      async () => Number(await machine.sh("find /var/lib/svc/cache -name '*.pack' | wc -l")) > 0,
      () => machine.console().slice(-500),
    );
    assert.doesNotMatch(await machine.journal(UNIT), /"level":"error"|EPERM|EACCES|not permitted/);
  });

  it("reloads its configuration, and refuses a faulty one", async () => {
    const first = await processId();
    await machine.write("/etc/svc/svc.yaml", settings("log: {level: loud}\n"));
    await machine.must(["systemctl", "reload", UNIT]);
    await until(async () => /refused/.test(await machine.property(UNIT, "StatusText")));
    assert.match(await machine.journal(UNIT), /svc\.yaml:\d+:\d+: log\.level/);
    await machine.write("/etc/svc/svc.yaml", settings("log: {level: debug}\n"));
    await machine.must(["systemctl", "reload", UNIT]);
    await until(async () => /"msg":"reloaded"/.test(await machine.journal(UNIT)));
    await until(async () => (await machine.property(UNIT, "ActiveState")) === "active");
    assert.equal(await processId(), first);
  });

  it("is restarted by the watchdog when its process is frozen", async () => {
    const first = await processId();
    await machine.must(["kill", "-STOP", first]);
    await until(async () => (await machine.property(UNIT, "NRestarts")) === "1");
    await until(async () => (await machine.property(UNIT, "ActiveState")) === "active");
    assert.notEqual(await processId(), first);
    assert.match(await clone(), /^[1-9]\d*$/);
  });

  it("is restarted by the watchdog when its event loop is blocked", async () => {
    const first = await processId();
    // The configuration is read without a return to the event loop, and a pipe without a writer never ends.
    await machine.sh(`mv /etc/svc/svc.yaml /etc/svc/kept.yaml; mkfifo /etc/svc/svc.yaml; kill -HUP ${first}`);
    await until(async () => (await machine.property(UNIT, "NRestarts")) === "2");
    await machine.sh("mv /etc/svc/kept.yaml /etc/svc/svc.yaml");
    await machine.must(["systemctl", "restart", UNIT]);
    assert.notEqual(await processId(), first);
    assert.match(await clone(), /^[1-9]\d*$/);
  });

  it("serves on the socket of systemd, also while it restarts", async () => {
    await machine.must(["systemctl", "stop", UNIT]);
    await machine.must(["systemctl", "start", "svc.socket"]);
    assert.match(await clone(), /^[1-9]\d*$/);
    const restarted = machine.must(["systemctl", "restart", UNIT]);
    assert.match(await clone(), /^[1-9]\d*$/);
    await restarted;
    assert.match(await clone(), /^[1-9]\d*$/);
  });

  it("stops without a fault", async () => {
    await machine.must(["systemctl", "stop", UNIT]);
    assert.equal(await machine.property(UNIT, "Result"), "success");
    assert.match(await machine.journal(UNIT), /"msg":"stopped"/);
  });
});
