import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { startCodeHostProcess, until, type CodeHostProcess } from "@devplat/testkit";
import { Machine } from "../machine/machine.ts";
import { Debian, PACKAGES } from "./debian.ts";
import { LATER, OLD, Packages } from "./packages.ts";
import { ADDRESS, SvcClient } from "./svc-client.ts";

const UNIT = "svc.service";

/** Shell conditions that hold at one moment of an upgrade. */
const MOMENTS: readonly (readonly [when: string, condition: string])[] = [
  ["it has written a part of the program", "test -s /usr/bin/svc.dpkg-new"],
  ["the new program is in its place", 'test "$(stat -c %i /usr/bin/svc)" != "$(cat /tmp/inode)"'],
  ["it runs the script after the unpacking", "pgrep -x svc.postinst"],
];

describe("an upgrade of svc whose dpkg is killed", () => {
  let machine: Machine;
  let debian: Debian;
  let packages: Packages;
  let host: CodeHostProcess;
  let client: SvcClient;
  let session = "";

  before(async () => {
    packages = await Packages.build("svc");
    machine = await Machine.boot({ mounts: { [PACKAGES]: packages.folder } });
    debian = new Debian(machine);
    client = new SvcClient(machine);
    host = await startCodeHostProcess(machine.pid);
    await host.addRepository("acme", "app");
    await debian.update();
    await debian.install(packages.fileOf(OLD));
    await machine.sh(
      `printf 'dev: {mode: true}\\nhost: {url: "${host.url}", api_url: "${host.apiUrl}"}\\n' >>/etc/svc/svc.yaml; systemctl start svc`,
    );
    const login = await machine.must([
      "curl",
      "-sSf",
      "--json",
      '{"username":"ada","role":"admin"}',
      `${ADDRESS}/auth/test-login`,
    ]);
    session = (JSON.parse(login) as { session_token: string }).session_token;
  });
  beforeEach(async () => {
    await debian.install(packages.fileOf(OLD), "--allow-downgrades");
    await until(async () => (await machine.property(UNIT, "ActiveState")) === "active");
  });
  after(async () => {
    await host?.stop();
    await machine?.stop();
    await packages?.remove();
  });

  for (const [when, condition] of MOMENTS) {
    it(`is completed by dpkg and apt, if ${when}`, async () => {
      const files = await machine.sh("md5sum /etc/svc/svc.yaml /etc/svc/svc.env");
      const killer = machine.exec([
        "bash",
        "-c",
        `stat -c %i /usr/bin/svc >/tmp/inode; touch /tmp/waits
         until ${condition} >/dev/null 2>&1; do :; done
         pkill -KILL -x 'dpkg|dpkg-deb|svc.postinst|deb-systemd-inv'`,
      ]);
      await until(async () => (await machine.exec(["rm", "/tmp/waits"])).code === 0);
      await assert.rejects(debian.install(packages.fileOf(LATER)), /dpkg/);
      assert.equal((await killer).code, 0);
      assert.notEqual(await debian.state("svc"), "ii");
      // Clients notice nothing of it, or a restart.
      await until(async () => (await machine.property(UNIT, "ActiveState")) === "active");
      assert.match(await client.clone("acme/app"), /^[1-9]\d*$/);

      await machine.must(["dpkg", "--configure", "-a"], { timeoutMs: 300_000 });
      await debian.install(packages.fileOf(LATER), "--fix-broken");
      assert.equal(await debian.state("svc"), "ii");
      assert.equal(await machine.must(["svc", "version"]), LATER);
      assert.equal(await machine.sh(`ls /usr/bin/svc*`), "/usr/bin/svc");
      assert.equal(await machine.sh("md5sum /etc/svc/svc.yaml /etc/svc/svc.env"), files);
      const exe = `/proc/${await machine.property(UNIT, "MainPID")}/exe`;
      assert.equal(await machine.sh(`readlink ${exe}`), "/usr/bin/svc");
      const auth = `Authorization: Bearer ${session}`;
      await machine.must(["curl", "-sSf", "-H", auth, `${ADDRESS}/api/cached-repos`]);
      assert.match(await client.clone("acme/app"), /^[1-9]\d*$/);
    });
  }
});
