import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { silentLogger, systemClock } from "@devplat/base";
import { startSshd, tempFolder, until, type Sshd, type TempFolder } from "@devplat/testkit";
import type { Places } from "../agent-files/places.ts";
import { embeddedSignIn } from "../auth/sign-in.ts";
import { parseConfig, type LoadedConfig } from "../config/load.ts";

import { platformOf } from "../platform/platform.ts";
import type { RemoteView } from "../remote-view.ts";
import type { BuiltForwards } from "../surfaces/forwards/control/forwards-on-demand.ts";
import { ForwardError } from "../surfaces/forwards/errors/forward-error.ts";
import { ConnectionError } from "../surfaces/forwards/openssh/failure.ts";
import type { NewRemote } from "../surfaces/forwards/remote-control.ts";
import { TokenLender } from "../surfaces/forwards/tokens/token-lender.ts";
import { assembleForwards, type ForwardsFoundation } from "./forwards.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 240_000;
const never = new AbortController().signal;

/*
 * The parts of Windows with OpenSSH of this system: the injected platform decides that there are no control sockets and no
 * forwards. ssh and sshd are real.
 */
describe("forwards on Windows, with a real sshd", { timeout: TIMEOUT_MS }, () => {
  let folder: TempFolder;
  let sshd: Sshd;
  let built: BuiltForwards;
  before(async () => {
    folder = await tempFolder("fw");
    sshd = await startSshd();
    const at = (name: string): string => join(folder.path, name);
    await writeFile(at("ssh_config"), `IdentityAgent none\nIdentityFile ${sshd.userKey}\n`);
    // In place of the configuration of this machine's user.
    await writeFile(
      at("ssh"),
      `#!/bin/sh\necho "$*" >> ${at("calls")}\ncase " $* " in *" -G "*) exec ssh -F ${at("ssh_config")} "$@";; esac\nexec ssh "$@"\n`,
    );
    await chmod(at("ssh"), 0o700);
    for (const name of ["home", "config", "runtime", "state"]) await mkdir(at(name), { mode: 0o700 });
    const places = {
      home: at("home"),
      configFolder: at("config"),
      runtime: at("runtime"),
      state: at("state"),
      platform: platformOf("win32"),
    };
    const config = parseConfig({
      path: "config.yaml",
      text: `store: { driver: embedded }\nssh: { command: ${at("ssh")} }\n`,
    });
    const lender = new TokenLender({
      children: undefined,
      ask: undefined,
      clock: systemClock,
      logger: silentLogger,
    });
    const host = {
      places: places as Places,
      environment: process.env,
      clock: systemClock,
      logger: silentLogger,
    };
    built = assembleForwards(host, {
      current: () => ({ config }) as LoadedConfig,
      signIn: embeddedSignIn,
      lending: { lender },
      identities: { socketFor: async () => undefined, onNewKey: () => undefined },
    } as unknown as ForwardsFoundation);
    await built.surface.start();
  });
  after(async () => {
    await built.surface.stop();
    await sshd.stop();
    await folder.remove();
  });

  const remoteOf = (more: Partial<NewRemote> = {}): NewRemote => ({
    host: "127.0.0.1",
    settings: { port: sshd.port, remote_socket: "~/.ssh/daemon.test.sock" },
    hostKey: undefined,
    accepted: [],
    force: false,
    ...more,
  });
  const only = (): RemoteView => built.remotes.list()[0] ?? assert.fail("no remote");
  const file = (): Promise<string> => readFile(join(folder.path, "config/ssh.yaml"), "utf8");

  it("a failed login saves nothing, and has its class", async () => {
    const other = await startSshd();
    try {
      const settings = { port: other.port, remote_socket: "~/.ssh/daemon.test.sock" };
      const refused = built.remotes.add(remoteOf({ settings, hostKey: other.hostKey }), never);
      await assert.rejects(
        refused,
        (error) => error instanceof ConnectionError && error.failure.class === "authentication",
      );
      const wrong = built.remotes.add(remoteOf({ hostKey: other.hostKey }), never);
      await assert.rejects(
        wrong,
        (error) => error instanceof ConnectionError && error.failure.class === "host-key",
      );
      assert.doesNotMatch(sshd.output(), /Accepted publickey/);
    } finally {
      await other.stop();
    }
    await assert.rejects(file(), { code: "ENOENT" });
    assert.deepEqual(built.remotes.list(), []);
  });

  it("add logs in by a plain ssh, then keeps the entry, offline with the class local [agent 36.17]", async () => {
    const asked = await built.remotes.add(remoteOf(), never);
    assert.ok(asked.state === "unconfirmed", JSON.stringify(asked));
    const added = await built.remotes.add(remoteOf({ accepted: [asked.offered.fingerprint] }), never);
    assert.ok(added.state === "saved");
    assert.match(sshd.output(), /Accepted publickey/);
    assert.ok((await file()).includes(sshd.hostKey));
    const { state, error, host_key: key } = only();
    assert.deepEqual([state, error?.class, key?.key], ["offline", "local", sshd.hostKey]);
    assert.match(error?.message ?? "", /neither control sockets nor forwards/);
    assert.match(error?.advice ?? "", /Linux or macOS/);
    const calls = await readFile(join(folder.path, "calls"), "utf8");
    assert.doesNotMatch(calls, /(?:^| )-(?:M|S|O|R|L)(?: |$)/m);
    // The connection has ended, and none of its files is left.
    await until(() => /Disconnected from user|Connection closed by/.test(sshd.output()));
    assert.deepEqual(await readdir(join(folder.path, "runtime/ssh")), []);
  });

  it("retry, edit and remove work on the entry", async () => {
    built.remotes.retry("127.0.0.1");
    await until(() => only().state === "offline");
    assert.equal((await built.remotes.edit("127.0.0.1", { enabled: false })).state, "disabled");
    await built.remotes.remove("127.0.0.1");
    assert.throws(
      () => built.remotes.get("127.0.0.1"),
      (error) => error instanceof ForwardError && error.code === "host_unknown",
    );
  });
});
