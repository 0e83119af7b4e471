import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import { ForwardError } from "../errors/forward-error.ts";
import type { RemoteEntry } from "../file/remote-entry.ts";
import { findRoute } from "./route.ts";
import { SshProgram, sshEnvironment } from "./ssh-program.ts";
import { defaultConfiguration, userConfiguration, type ResolveHost } from "./user-configuration.ts";

const ENTRY: RemoteEntry = { host: "dev", port: 22, remote_socket: "/a.sock", enabled: true };
const isFault = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof ForwardError && error.code === code && message.test(error.message);

describe("the user's ssh configuration", () => {
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("ssh-user");
  });
  after(() => folder.remove());

  /** Asks the real ssh with this text as the user's configuration. */
  async function asked(configuration: string): Promise<ResolveHost> {
    const file = join(folder.path, "config");
    await writeFile(file, configuration);
    const ssh = new SshProgram({ command: "ssh", environment: process.env });
    return userConfiguration({ run: (args, timeoutMs) => ssh.run(["-F", file, ...args], timeoutMs) });
  }
  const names = async (entry: RemoteEntry, configuration: string): Promise<string[]> =>
    (await findRoute(entry, await asked(configuration))).map(({ keyName }) => keyName);

  it("gives names, keys and jump hosts as ssh resolves them", async () => {
    const resolve = await asked(
      'Host dev\n  HostName %h.example.com\n  User me\n  Port 2222\n  IdentityFile "~/.ssh/a b"\n  CertificateFile /c\n  IdentitiesOnly yes\n  IdentityAgent none\n  ProxyJump you@jump:23\n',
    );
    assert.deepEqual(await resolve({ host: "dev", user: undefined, port: undefined }), {
      hostName: "dev.example.com",
      user: "me",
      port: 2222,
      identityFiles: ["~/.ssh/a b"],
      certificateFiles: ["/c"],
      identityAgent: "none",
      identitiesOnly: true,
      proxyJump: "you@jump:23",
      proxyCommand: undefined,
    });
    const other = await resolve({ host: "::1", user: "they", port: 24 });
    assert.deepEqual([other.hostName, other.user, other.port], ["::1", "they", 24]);
    assert.deepEqual(other.identityFiles, []);
  });

  it("the port and the jump hosts of the entry win", async () => {
    const configuration = "Host dev\n  Port 2222\n  ProxyJump jump\nHost two\n  Port 23\n";
    assert.deepEqual(await names(ENTRY, configuration), ["jump:22", "dev:22"]);
    assert.deepEqual(await names({ ...ENTRY, proxy_jump: "one,two,[::1]:9" }, configuration), [
      "one:22",
      "two:23",
      "[::1]:9",
      "dev:22",
    ]);
    assert.deepEqual(await names({ ...ENTRY, proxy_jump: "none" }, configuration), ["dev:22"]);
    assert.deepEqual(
      (await findRoute(ENTRY, defaultConfiguration)).map(({ keyName }) => keyName),
      ["dev:22"],
    );
  });

  it("only the first host of a chain has jump hosts of its own, and a circle ends", async () => {
    const configuration = "Host a\n  ProxyJump x\nHost b\n  ProxyJump y\nHost x\n  ProxyCommand nc\n";
    assert.deepEqual(await names({ ...ENTRY, proxy_jump: "a,b" }, configuration), [
      "x:22",
      "a:22",
      "b:22",
      "dev:22",
    ]);
    const loop = "Host *\n  ProxyJump bastion\n";
    await assert.rejects(names(ENTRY, loop), isFault("configuration_refused", /jumphost loop via bastion$/));
    const circle = "Host dev\n  ProxyJump a\nHost a\n  ProxyJump b\nHost b\n  ProxyJump a\n";
    await assert.rejects(names(ENTRY, circle), isFault("configuration_refused", /more than 8 hosts/));
  });

  it("a name or a chain that cannot be used is refused", async () => {
    const refused = isFault("configuration_refused", /ssh configuration of dev/);
    await assert.rejects(names(ENTRY, "Host dev\n  HostName a_$(touch_x)\n"), refused);
    await assert.rejects(names(ENTRY, 'Match exec "exit 0"\n  Foo bar\n'), refused);
  });
});

describe("the ssh program", () => {
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("ssh-program");
  });
  after(() => folder.remove());

  async function version(line: string): Promise<string> {
    const command = join(folder.path, "ssh");
    await writeFile(command, `#!/bin/sh\necho '${line}' >&2\n`, { mode: 0o700 });
    return await new SshProgram({ command, environment: process.env }).checkVersion();
  }

  it("is OpenSSH 8.4 or newer, or is refused with the version that was found", async () => {
    assert.equal(await version("OpenSSH_8.4p1 Debian-5, OpenSSL 1.1.1"), "8.4p1");
    assert.equal(await version("OpenSSH_for_Windows_9.5p1, LibreSSL 3.8.2"), "9.5p1");
    assert.equal(await version("OpenSSH_10.0p2, OpenSSL 3.5.0"), "10.0p2");
    await assert.rejects(version("OpenSSH_8.3p1"), isFault("ssh_unusable", /it is OpenSSH 8\.3p1/));
    await assert.rejects(version("OpenSSH_7.9"), isFault("ssh_unusable", /it is OpenSSH 7\.9/));
    await assert.rejects(version("dropbear"), isFault("ssh_unusable", /it is not OpenSSH/));
    const missing = new SshProgram({ command: join(folder.path, "none"), environment: process.env });
    await assert.rejects(missing.checkVersion(), isFault("ssh_unusable", /Cannot use/));
  });

  it("gets no variable of the daemon but those that it needs", () => {
    const environment = {
      PATH: "/bin",
      AGENT_TOKEN: "x",
      DISPLAY: ":0",
      SSH_ASKPASS: "/x",
      SSH_AUTH_SOCK: "/s",
    };
    assert.deepEqual(sshEnvironment(environment), {
      PATH: "/bin",
      SSH_AUTH_SOCK: "/s",
      SSH_ASKPASS_REQUIRE: "never",
      LC_ALL: "C",
    });
  });
});
