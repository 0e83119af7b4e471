import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { until, vaultPrograms } from "@devplat/testkit";
import { Machine } from "../machine/machine.ts";
import { Debian, PACKAGES } from "./debian.ts";
import { LATER, OLD, Packages } from "./packages.ts";

const UNIT = "agent.service";
const VAULT = "http://127.0.0.1:8300";
const ROOT_TOKEN = "root-of-the-tests";
const POLICY = `path "kv/*" { capabilities = ["create", "read", "update", "delete", "list"] }
path "sys/internal/ui/mounts/*" { capabilities = ["read"] }`;
const RULES = `
enrolments:
  ssh/work: {engine: ssh, passphrase: unsafe}
rules:
  - name: npm
    key: tools/npm
    target: {path: ~/.npmrc, format: ini, template: "//registry.example/:_authToken={{ .token }}"}
  - name: ssh-key
    key: ssh/work
    target: {path: ~/.ssh/id_work, format: text, template: "{{ .private_key }}"}
`;

/** One machine from the install to the purge: each test goes on where the one before has ended. */
describe("the life of agent on Debian", () => {
  let machine: Machine;
  let debian: Debian;
  let packages: Packages;
  let token = "";
  let sshKey = "";

  before(async () => {
    packages = await Packages.build("agent");
    machine = await Machine.boot({
      mounts: { [PACKAGES]: packages.folder, "/usr/local/bin/vault": vaultPrograms().vault },
    });
    debian = new Debian(machine);
    await machine.addUser();
    await machine.sh(
      `systemd-run -q --unit=vault -E HOME=/root vault server -dev -dev-root-token-id=${ROOT_TOKEN} -dev-listen-address=${new URL(VAULT).host}`,
    );
    await until(async () => (await vault("status")) !== "");
    await vault("secrets enable -path=kv kv-v2");
    await vault(`policy write user - <<'END'\n${POLICY}\nEND`);
    token = await vault("token create -policy=user -field=token -display-name=ada");
    await debian.update();
  });
  after(async () => {
    await machine?.stop();
    await packages?.remove();
  });

  const vault = async (command: string): Promise<string> =>
    machine.sh(`VAULT_ADDR=${VAULT} VAULT_TOKEN=${ROOT_TOKEN} vault ${command}`);
  const asUser = async (script: string): Promise<string> => machine.sh(script, "user");
  const install = async (version: string, ...options: readonly string[]): Promise<string> =>
    debian.install(packages.fileOf(version), ...options);
  const property = async (name: string): Promise<string> => machine.property(UNIT, name, "user");
  const processId = async (): Promise<string> => {
    const pid = await property("MainPID");
    assert.notEqual(pid, "0", await machine.journal(UNIT, "user"));
    return pid;
  };
  /** Changes the secret in the store, and waits until the daemon has changed the file and the mount. */
  const assertInStep = async (value: string): Promise<void> => {
    await vault(`kv put kv/users/ada/tools/npm token=${value}`);
    await until(
      async () => (await asUser("cat ~/.npmrc")) === `//registry.example/:_authToken=${value}`,
      () => machine.console().slice(-1000),
    );
    await until(async () => (await asUser("cat ~/.daemon/tools/npm.json")).includes(value));
  };
  /** The session, the enrolment and the user's settings are as they were. */
  const assertNothingLost = async (): Promise<void> => {
    await asUser("agent status --check");
    assert.equal(await asUser("cat ~/.daemon-token"), token);
    assert.match(await asUser("agent enrol list"), /ssh\/work +ssh +enrolled/);
    assert.equal(await asUser("md5sum <~/.ssh/id_work"), sshKey);
    assert.match(await asUser("cat ~/.config/daemon/config.yaml"), /^# edited by hand$/m);
    assert.equal(await asUser("systemctl --user is-enabled agent.service"), "enabled");
  };

  it("is installed by apt with its dependencies, and starts nothing", async () => {
    assert.match(await install(OLD), /libatomic1/);
    assert.equal(await asUser("agent version"), OLD);
    assert.deepEqual(
      [await property("ActiveState"), await property("UnitFileState")],
      ["inactive", "disabled"],
    );
  });

  it("signs in and syncs as a service, after its init", async () => {
    await asUser("agent init --mount");
    await asUser(
      `cd ~/.config/daemon
       sed -i 's|^  driver: embedded|  driver: vault\\n  address: ${VAULT}|; s|interval: 15m|interval: 10s|' config.yaml
       sed -i '/^# Each rule brings/,$d' config.yaml
       cat >>config.yaml <<'END'
# edited by hand
${RULES}END
       agent config check`,
    );
    await asUser(`printf '%s\\n' ${token} | script -qec 'agent login' /dev/null`);
    await asUser("systemctl --user enable --now agent-mount.socket agent.service");
    await assertInStep("first");
    await until(async () => (await asUser("agent enrol list")).includes("enrolled"));
    sshKey = await until(async () => asUser("md5sum <~/.ssh/id_work"));
    await assertNothingLost();
  });

  it("loses nothing by an upgrade, which restarts the daemon of the user", async () => {
    const first = await processId();
    await install(LATER);
    assert.equal(await asUser("agent version"), LATER);
    assert.notEqual(await processId(), first);
    assert.equal(await machine.sh(`readlink /proc/${await processId()}/exe`), "/usr/bin/agent");
    await assertNothingLost();
    await assertInStep("second");
  });

  it("loses nothing by a downgrade", async () => {
    await assert.rejects(install(OLD), /downgrade/i);
    await install(OLD, "--allow-downgrades");
    assert.equal(await asUser("agent version"), OLD);
    assert.equal(await property("ActiveState"), "active");
    await assertNothingLost();
    await assertInStep("third");
    await install(LATER);
  });

  it("does not start a daemon that the user has stopped", async () => {
    await asUser("systemctl --user stop agent");
    await install(LATER, "--reinstall");
    assert.equal(await property("ActiveState"), "inactive");
    await asUser("systemctl --user start agent");
  });

  for (const action of ["remove", "purge"]) {
    it(`is stopped by ${action}, which keeps the files of the user, and goes on after an install`, async () => {
      await debian.apt(action, "agent");
      assert.equal(await debian.state("agent"), "");
      await until(async () => (await machine.exec(["pgrep", "-x", "agent"])).code === 1);
      assert.equal(await asUser("grep /home/ada/.daemon /proc/mounts || true"), "");
      await asUser("test -s ~/.config/daemon/config.yaml -a -s ~/.daemon-token -a -s ~/.npmrc");
      await install(LATER);
      await asUser("systemctl --user start agent-mount.socket agent");
      await assertNothingLost();
      await assertInStep(action);
    });
  }
});
