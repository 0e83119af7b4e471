import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { run, s3Program, startCodeHostProcess, until, type CodeHostProcess } from "@devplat/testkit";
import { Machine } from "../machine/machine.ts";
import { Debian, PACKAGES } from "./debian.ts";
import { LATER, OLD, Packages } from "./packages.ts";
import { SvcClient } from "./svc-client.ts";

const UNIT = "svc.service";
const BUCKET = {
  access: "AKIDOFTESTS",
  secret: "a/secret+of=the-tests",
  endpoint: "http://127.0.0.1:7070",
};
/** A migration of a version that does not exist yet. */
const LATER_MIGRATION = "9999_of_a_later_version";

/** One machine from the install to the purge: each test goes on where the one before has ended. */
describe("the life of svc on Debian", () => {
  let machine: Machine;
  let debian: Debian;
  let packages: Packages;
  let host: CodeHostProcess;
  let client: SvcClient;
  let token = "";
  let key = "";

  before(async () => {
    packages = await Packages.build("svc");
    await changeConfiguration(join(packages.folder, packages.fileOf(LATER)));
    machine = await Machine.boot({
      mounts: { [PACKAGES]: packages.folder, "/usr/local/bin/versitygw": s3Program("versitygw") },
    });
    debian = new Debian(machine);
    client = new SvcClient(machine);
    host = await startCodeHostProcess(machine.pid);
    await host.addRepository("acme", "app");
    await host.addRepository("acme", "secret", { private: true });
    await machine.sh(
      `mkdir -p /srv/bucket/cache /srv/sidecar
       systemd-run -q --unit=bucket versitygw --port ${new URL(BUCKET.endpoint).host} --access ${BUCKET.access} \\
         --secret '${BUCKET.secret}' --quiet posix --sidecar /srv/sidecar /srv/bucket`,
    );
    await debian.update();
  });
  after(async () => {
    await host?.stop();
    await machine?.stop();
    await packages?.remove();
  });

  const install = async (version: string, ...options: readonly string[]): Promise<string> =>
    debian.install(packages.fileOf(version), ...options);
  const processId = async (): Promise<string> => {
    const pid = await machine.property(UNIT, "MainPID");
    assert.notEqual(pid, "0", await machine.journal(UNIT));
    return pid;
  };
  /** A command of an administrator, with the settings and the user of the service. */
  const asService = async (...command: readonly string[]): Promise<string> =>
    machine.must([
      "systemd-run",
      ..."--quiet --pipe --wait -p User=svc -p EnvironmentFile=/etc/svc/svc.env".split(" "),
      ..."-E SVC_CONFIG=/etc/svc/svc.yaml -E SVC_DATA_DIR=/var/lib/svc svc".split(" "),
      ...command,
    ]);
  const fetches = async (): Promise<number> =>
    (await host.calls()).filter(({ command }) => command === "fetch").length;
  /** A clone by the token, for which the code host is asked for refs only. */
  const cloneFromCache = async (): Promise<void> => {
    await host.resetCalls();
    assert.match(await client.clone("acme/secret", token), /^[1-9]\d*$/);
    assert.equal(await fetches(), 0, "the clone was not served from the cache");
  };
  const actions = async (): Promise<string[]> => {
    const records = (await client.call("GET", "/api/audit?limit=200")) as { action: string }[];
    return records.map(({ action }) => action);
  };
  /** Everything that was made before an upgrade is there, and works. */
  const assertNothingLost = async (): Promise<void> => {
    const repositories = (await client.call("GET", "/api/cached-repos")) as { name: string }[];
    assert.deepEqual(
      repositories.map(({ name }) => name),
      ["secret"],
    );
    await cloneFromCache();
    const done = await actions();
    for (const action of ["login.succeeded", "cached_repository.added", "token.created"]) {
      assert.ok(done.includes(action), `${action} in ${done.join()}`);
    }
    assert.match(await machine.sh("cat /etc/svc/svc.yaml"), /^# edited by hand$/m);
    assert.equal(await machine.sh("grep ^SVC_ENCRYPTION_KEY /etc/svc/svc.env"), key);
  };

  it("is installed by apt with its dependencies, and waits for its administrator", async () => {
    const said = await install(OLD);
    assert.match(said, /libatomic1/);
    assert.match(said, /made an encryption key in \/etc\/svc\/svc\.env: keep a copy of it elsewhere/);
    assert.equal(await machine.must(["svc", "version"]), OLD);
    assert.deepEqual(
      [await machine.property(UNIT, "ActiveState"), await machine.property(UNIT, "UnitFileState")],
      ["inactive", "disabled"],
    );
    assert.equal(
      await machine.sh("stat -c '%U:%G %a' /etc/svc/svc.yaml /etc/svc/svc.env"),
      "root:svc 640\nroot:root 600",
    );
    key = await machine.sh("grep ^SVC_ENCRYPTION_KEY /etc/svc/svc.env");
  });

  it("serves a clone after one line is edited", async () => {
    const line = `host: {url: "${host.url}", api_url: "${host.apiUrl}"}`;
    await machine.sh(`sed -i 's|^# admins:.*|${line}|' /etc/svc/svc.yaml`);
    await machine.must(["systemctl", "enable", "--now", UNIT]);
    assert.match(await client.clone("acme/app"), /^[1-9]\d*$/);
  });

  it("serves clones by a token from its cache and from a bucket", async () => {
    await machine.sh(
      `cat >>/etc/svc/svc.yaml <<'END'
# edited by hand
admins: [alice]
END
       sed -i 's|^cache:|cache:\\n  object_bucket: cache\\n  object_endpoint: ${BUCKET.endpoint}|; s|api_url: [^}]*|&, client_id: Iv1.code-host-client|' /etc/svc/svc.yaml
       sed -i 's|^  listen:.*|&\\n  drain_seconds: 30|' /etc/svc/svc.yaml
       cat >>/etc/svc/svc.env <<'END'
SVC_HOST_CLIENT_SECRET=code-host-client-secret-planted
SVC_CACHE_OBJECT_ACCESS_KEY_ID=${BUCKET.access}
SVC_CACHE_OBJECT_SECRET_ACCESS_KEY=${BUCKET.secret}
END
       systemctl restart svc`,
    );
    assert.match(await asService("config", "check"), /svc\.yaml: ok/);
    await client.signIn();
    await client.call("POST", "/api/cached-repos", { owner: "acme", name: "secret" });
    token = await client.createToken("acme/secret");
    await client.clone("acme/secret", token);
    await until(
      async () => Number(await machine.sh("find /srv/bucket/cache -name '*.pack' | wc -l")) > 0,
      () => machine.console().slice(-1000),
    );
    await assertNothingLost();
  });

  it("loses nothing by an upgrade, which restarts it and asks nothing", async () => {
    const first = await processId();
    // The next version comes with another configuration.
    const said = await install(LATER);
    assert.doesNotMatch(said, /onfiguration file/);
    assert.equal(await machine.must(["svc", "version"]), LATER);
    assert.notEqual(await processId(), first);
    assert.equal(await machine.sh(`readlink /proc/${await processId()}/exe`), "/usr/bin/svc");
    assert.equal(await machine.property(UNIT, "UnitFileState"), "enabled");
    await assertNothingLost();
  });

  it("has its packs in the bucket after an upgrade and the loss of its disk", async () => {
    await machine.sh("systemctl stop svc; rm -r /var/lib/svc/cache; systemctl start svc");
    await cloneFromCache();
  });

  it("refuses no request during an upgrade, with the socket of systemd", async () => {
    await machine.sh("systemctl stop svc; systemctl start svc.socket svc");
    const first = await processId();
    const upgrade = new AbortController();
    const upgraded = install(LATER, "--reinstall").finally(() => upgrade.abort());
    let clones = 0;
    for (; !upgrade.signal.aborted; clones++) {
      assert.match(await client.clone("acme/secret", token), /^[1-9]\d*$/);
    }
    await upgraded;
    assert.ok(clones > 1, String(clones));
    assert.notEqual(await processId(), first);
    await machine.sh("systemctl stop svc.socket svc; systemctl start svc");
  });

  it("loses nothing by a downgrade to a version with the same tables", async () => {
    await assert.rejects(install(OLD), /downgrade/i);
    await install(OLD, "--allow-downgrades");
    assert.equal(await machine.must(["svc", "version"]), OLD);
    assert.equal(await machine.property(UNIT, "ActiveState"), "active");
    await assertNothingLost();
    await install(LATER);
  });

  it("refuses the database of a newer version, says why, and changes nothing", async () => {
    // What a newer version would leave: a migration that this one does not know.
    const statement = (sql: string): string =>
      `const { DatabaseSync } = require("node:sqlite"); new DatabaseSync("/var/lib/svc/svc.db").exec(${JSON.stringify(sql)})`;
    const onDatabase = async (sql: string): Promise<string> =>
      machine.must(["/usr/local/bin/node", "-e", statement(sql)]);
    await machine.copyIn(process.execPath, "/usr/local/bin/node", 0o755);
    await onDatabase(
      `INSERT INTO kysely_migration (name, timestamp) VALUES ('${LATER_MIGRATION}', '2030-01-01T00:00:00Z')`,
    );
    const said = await install(OLD, "--allow-downgrades");
    assert.match(said, /svc: the service does not start with this version.*journalctl -u svc/);
    assert.match(
      await machine.journal(UNIT),
      new RegExp(
        `migrated by a newer version of this program \\(unknown: ${LATER_MIGRATION}\\)[^]*Start that version, or restore a backup`,
      ),
    );
    assert.equal(await debian.state("svc"), "ii");
    await onDatabase(`DELETE FROM kysely_migration WHERE name = '${LATER_MIGRATION}'`);
    await install(LATER);
    await machine.sh("systemctl reset-failed svc; systemctl start svc");
    await assertNothingLost();
  });

  it("keeps configuration, key and data when it is removed, and goes on after an install", async () => {
    await debian.apt("remove", "svc");
    assert.equal(await debian.state("svc"), "rc");
    assert.equal(await machine.property(UNIT, "ActiveState"), "inactive");
    assert.equal(await machine.sh("ls /usr/bin/svc 2>/dev/null || true"), "");
    await machine.sh("test -s /etc/svc/svc.yaml -a -s /etc/svc/svc.env -a -s /var/lib/svc/svc.db");
    await install(LATER);
    await machine.must(["systemctl", "start", UNIT]);
    await assertNothingLost();
  });

  it("leaves a configuration that was removed on purpose away", async () => {
    await machine.sh("mv /etc/svc/svc.yaml /srv/svc.yaml");
    await install(LATER, "--reinstall");
    await machine.sh("test ! -e /etc/svc/svc.yaml; mv /srv/svc.yaml /etc/svc/svc.yaml");
  });

  it("leaves nothing behind when it is purged", async () => {
    await debian.apt("purge", "svc");
    assert.equal(await debian.state("svc"), "");
    const left = await machine.sh(
      "find / -xdev \\( -path /proc -o -path /srv -o -path /tmp \\) -prune -o \\( -name 'svc*' -o -path '/var/lib/svc*' \\) -print",
    );
    assert.deepEqual(
      left.split("\n").filter((path) => path !== "" && !path.startsWith("/usr/share/bash")),
      [],
    );
    assert.equal(await machine.sh("getent passwd svc | cut -d: -f1"), "svc");
    await install(LATER);
    assert.notEqual(await machine.sh("grep ^SVC_ENCRYPTION_KEY /etc/svc/svc.env"), key);
    assert.equal(await machine.property(UNIT, "ActiveState"), "inactive");
  });
});

/** Gives a package another example of a configuration, as a later version has one. */
async function changeConfiguration(deb: string): Promise<void> {
  const folder = `${deb}.files`;
  await must("dpkg-deb", ["-R", deb, folder]);
  await appendFile(join(folder, "usr/share/svc/svc.yaml"), "# Added in a later version.\n");
  await must("dpkg-deb", ["-Znone", "--root-owner-group", "-b", folder, deb]);
}

async function must(command: string, args: readonly string[]): Promise<void> {
  const { code, stderr } = await run(command, args);
  assert.equal(code, 0, stderr);
}
