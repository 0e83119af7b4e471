import assert from "node:assert/strict";
import { lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { exists } from "@devplat/base";
import { startSshd, type Sshd } from "@devplat/testkit";
import { ForwardConnection } from "./connection.ts";
import { ConnectionError } from "./openssh/failure.ts";
import { ControlFolder } from "./openssh/control-folder.ts";
import { SshProgram } from "./openssh/ssh-program.ts";
import { userConfiguration } from "./openssh/user-configuration.ts";
import { entryFor, TestStation } from "./forwards.test-kit.ts";

const isRoot = process.geteuid?.() === 0;
/** A hang ends by itself. */
const TIMEOUT_MS = 240_000;
const NEVER = new AbortController().signal;

/**
 * ssh with the test's file as the user's and the system's configuration: both are at fixed places, so it runs in a mount
 * namespace. Of a generated configuration it first changes what the test's sed script says.
 */
const SHIM = `#!/bin/sh
for each; do [ "$before" = -F ] && [ "$each" != none ] && sed -i -f "$0.sed" "$each"; before=$each; done
exec unshare NAMESPACES sh -c '
  mount -t tmpfs none "$1" && mkdir -m 700 "$1/.ssh" && cp "$2" "$1/.ssh/config" && chmod 600 "$1/.ssh/config" &&
  mount --bind "$2" /etc/ssh/ssh_config && shift 2 && exec ssh "$@"
' sh "HOME_FOLDER" "$0.config" "$@"
`;

describe("a connection under a hostile configuration of user and system", { timeout: TIMEOUT_MS }, () => {
  let station: TestStation;
  let sshd: Sshd;
  let wrongKey = "";
  let shim = "";
  let folder = "";
  let made: ForwardConnection | undefined;
  before(async () => {
    station = await TestStation.create();
    sshd = await startSshd({ settings: [`SetEnv HOME=${station.path}`] });
    const other = await startSshd();
    wrongKey = other.hostKey;
    await other.stop();
    shim = join(station.path, "ssh-shim");
    folder = join(station.path, "effects");
    await mkdir(folder);
    // Inside of the namespace the user is root.
    assert.equal(userInfo().homedir, homedir());
    await writeFile(
      shim,
      SHIM.replace("HOME_FOLDER", homedir()).replace(
        "NAMESPACES",
        isRoot ? "--mount" : "--map-root-user --mount",
      ),
      { mode: 0o700 },
    );
    await writeFile(`${shim}.config`, hostile());
    await writeFile(join(folder, "known"), `127.0.0.1,[127.0.0.1]:${sshd.port},alias ${sshd.hostKey}\n`);
  });
  afterEach(async () => {
    await made?.close();
    made = undefined;
  });
  after(async () => {
    await sshd.stop();
    await station.remove();
  });

  /** The opposite of every option of the generated file that has one. */
  function hostile(): string {
    const options = [
      "IdentityAgent none",
      `IdentityFile ${sshd.userKey}`,
      "BatchMode no",
      "StrictHostKeyChecking no",
      `UserKnownHostsFile ${join(folder, "known")}`,
      `GlobalKnownHostsFile ${join(folder, "known")}`,
      "HostKeyAlias alias",
      "UpdateHostKeys yes",
      "CheckHostIP yes",
      "VerifyHostKeyDNS yes",
      "NoHostAuthenticationForLocalhost yes",
      `KnownHostsCommand /bin/echo 127.0.0.1 ${sshd.hostKey}`,
      "CanonicalizeHostname always",
      "HashKnownHosts yes",
      `RemoteCommand touch ${join(folder, "remote-command")}`,
      "SessionType default",
      "RequestTTY force",
      "ForkAfterAuthentication yes",
      "StdinNull yes",
      "Tunnel yes",
      "ForwardAgent yes",
      "ForwardX11 yes",
      "ClearAllForwardings no",
      `LocalForward ${join(folder, "local-forward")} /nowhere`,
      `RemoteForward ${join(folder, "remote-forward")} /nowhere`,
      "GatewayPorts yes",
      "StreamLocalBindMask 0000",
      "StreamLocalBindUnlink yes",
      "PermitLocalCommand yes",
      `LocalCommand touch ${join(folder, "local-command")}`,
      "GSSAPIDelegateCredentials yes",
      "AddKeysToAgent yes",
      "ServerAliveInterval 0",
      "ConnectionAttempts 9",
      "ControlMaster auto",
      `ControlPath ${join(folder, "control")}`,
      "ControlPersist yes",
      "LogLevel QUIET",
      "VisualHostKey yes",
    ];
    return `Host *\n${options.map((line) => `  ${line}\n`).join("")}`;
  }

  /** @param changes options of the generated file to be given another value; without a value they are taken out */
  async function connect(hostKey: string, changes: readonly string[] = []): Promise<ForwardConnection> {
    const script = changes.flatMap((option) => {
      const [key = ""] = option.split(" ", 1);
      return [`/^  ${key} /d`, ...(option === key ? [] : [`s|^  Port .*|&\\n  ${option}|`])];
    });
    await writeFile(`${shim}.sed`, script.map((line) => `${line}\n`).join(""));
    const ssh = new SshProgram({ command: shim, environment: process.env });
    const parts = {
      ...(await station.parts("")),
      ssh,
      folder: new ControlFolder({ path: station.runtime, ssh }),
      resolve: userConfiguration(ssh),
    };
    made = await ForwardConnection.open(parts, entryFor(sshd, { host_key: hostKey }), undefined, NEVER);
    return made;
  }
  const isRefused = async (action: Promise<unknown>): Promise<boolean> =>
    await action.then(
      () => false,
      (error: unknown) => {
        assert.ok(error instanceof ConnectionError);
        assert.equal(error.failure.class, "host-key", error.message);
        return true;
      },
    );

  it("the configuration is in effect: ssh alone would obey it", async () => {
    await writeFile(`${shim}.sed`, "");
    const ssh = new SshProgram({ command: shim, environment: process.env });
    const { stdout } = await ssh.run(["-G", "--", "127.0.0.1"], 10_000);
    assert.match(stdout, /^stricthostkeychecking false$/m);
    assert.match(stdout, /^permitlocalcommand yes$/m);
  });

  it("a wrong pin is refused", async () => {
    assert.ok(await isRefused(connect(wrongKey)));
  });

  it("without one of our lines a wrong pin would be accepted", async () => {
    for (const options of [
      "StrictHostKeyChecking no",
      `UserKnownHostsFile ${join(folder, "known")}`,
      `GlobalKnownHostsFile ${join(folder, "known")}`,
      // ssh heeds it only without an alias.
      "NoHostAuthenticationForLocalhost yes, HostKeyAlias",
      // In a namespace of a user ssh cannot change to the user that it runs this as.
      ...(isRoot ? [`KnownHostsCommand /bin/echo 127.0.0.1 ${sshd.hostKey}`] : []),
    ]) {
      assert.equal(await isRefused(connect(wrongKey, options.split(", "))), false, options);
      await made?.close();
      made = undefined;
    }
  });

  /** Permissions of the local socket that leads to the remote one. */
  async function modeOfProbe(): Promise<number> {
    const name = (await readdir(station.runtime)).find((each) => each.endsWith(".probe")) ?? assert.fail();
    return (await lstat(join(station.runtime, name))).mode & 0o777;
  }
  const effects = ["remote-command", "local-command", "local-forward", "remote-forward", "control"];

  it("the connection comes up, and nothing that the user asked for happens", async () => {
    const { proven, pid } = await connect(sshd.hostKey);
    assert.equal(proven, true);
    for (const effect of effects) assert.equal(await exists(join(folder, effect)), false, effect);
    // It is still our child, so it has not gone to the background.
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    assert.match(status, new RegExp(`^PPid:\\t${process.pid}$`, "m"));
    assert.equal(await modeOfProbe(), 0o600);
  });

  it("without our lines it would happen", async () => {
    await connect(sshd.hostKey, [
      "PermitLocalCommand yes",
      `LocalCommand touch ${join(folder, "local-command")}`,
    ]);
    assert.ok(await exists(join(folder, "local-command")));
    await made?.close();
    await connect(sshd.hostKey, [
      "ClearAllForwardings no",
      `LocalForward ${join(folder, "local-forward")} /nowhere`,
    ]);
    assert.ok((await lstat(join(folder, "local-forward"))).isSocket());
    await made?.close();
    await connect(sshd.hostKey, ["StreamLocalBindMask 0000"]);
    assert.equal(await modeOfProbe(), 0o777);
    await made?.close();
    made = undefined;
    await assert.rejects(connect(sshd.hostKey, ["ForkAfterAuthentication yes"]));
  });

  it("there is never a prompt: a server that asks for a password ends the attempt", async () => {
    const asking = await startSshd({
      settings: ["PasswordAuthentication yes", "AuthenticationMethods password"],
    });
    try {
      const ssh = new SshProgram({ command: shim, environment: process.env });
      await writeFile(`${shim}.sed`, "");
      const parts = { ...(await station.parts("")), ssh, resolve: userConfiguration(ssh) };
      const opening = ForwardConnection.open(parts, entryFor(asking), undefined, NEVER);
      await assert.rejects(
        opening,
        (error) => error instanceof ConnectionError && error.failure.class === "authentication",
      );
    } finally {
      await asking.stop();
    }
  });
});
