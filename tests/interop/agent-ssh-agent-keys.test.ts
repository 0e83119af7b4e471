import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  run,
  runAtTerminal,
  startSshd,
  startVault,
  tempFolder,
  until,
  type Finished,
  type Sshd,
  type TempFolder,
  type Vault,
} from "@devplat/testkit";
import { agentArgs } from "../../apps/agent/src/surfaces/ssh-agent/server/ssh-agent.test-kit.ts";
import { PASSPHRASE, sshKeygen } from "../../apps/agent/src/surfaces/ssh-agent/sources/keys.test-kit.ts";
import { filesBelow, startSshEngine } from "./agent-ssh-agent-stand.ts";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";

/*
 * The SSH agent of a real daemon with keys of a real Vault (key-value engine and SSH engine), used by OpenSSH's own programs.
 */

let vault: Vault;
let sshd: Sshd;
let tools: TempFolder;
let folder: TempFolder;
let home: Home;
let running: RunningAgent;
let token: string;
let plain: Awaited<ReturnType<typeof sshKeygen>>;
let locked: typeof plain;

/** Ends a program at a terminal. */
const CTRL_C = "\u0003";
const POLICY = `
path "kv/data/users/ada/*" { capabilities = ["create", "read", "update", "delete"] }
path "kv/metadata/users/ada/*" { capabilities = ["read", "list", "delete"] }
path "kv/data/users/ada/ssh/denied" { capabilities = ["deny"] }
path "ssh/sign/login" { capabilities = ["update"] }
`;

before(async () => {
  plain = await sshKeygen(["-t", "ed25519", "-C", "plain"]);
  locked = await sshKeygen(["-t", "ed25519", "-C", "locked"], PASSPHRASE);
  vault = await startVault();
  const authority = await startSshEngine(vault, "login");
  await vault.request("PUT", "sys/policies/acl/ada", { policy: POLICY });
  token = await vault.createUserToken("ada", ["default", "ada"]);
  await vault.put("users/ada/ssh/plain", { private_key: plain.privateText });
  await vault.put("users/ada/ssh/locked", { private_key: locked.privateText, public_key: locked.publicText });
  await vault.put("users/ada/ssh/broken", { private_key: "not a key" });
  await vault.put("users/ada/ssh/denied", { private_key: plain.privateText });
  tools = await tempFolder("ssh-tools");
  const trusted = join(tools.path, "trusted");
  await writeFile(trusted, authority);
  sshd = await startSshd({ settings: [`TrustedUserCAKeys ${trusted}`, "LogLevel VERBOSE"] });
  const askpass = join(tools.path, "askpass");
  await writeFile(askpass, `#!/bin/sh\necho '${PASSPHRASE}'\n`);
  await chmod(askpass, 0o700);
  folder = await tempFolder("agent-home");
  home = new Home(folder.path, { SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: "force" });
  await configure(home, "    - { source: enrolments }\n");
  await home.write(".daemon-token", token);
  running = await daemon(home, async () => (await keys()).includes("prod:"));
});
after(async () => {
  await running.stop();
  await sshd.stop();
  await vault.stop();
  await folder.remove();
  await tools.remove();
});

async function configure(place: Home, more: string, rest = ""): Promise<void> {
  await place.configure(`store: { address: "${vault.address}", username: ada, kv_mount: kv, token_socket: [] }
api: { enabled: true }
agent:
  enabled: true
  unix: { path: "${socketOf(place)}" }
  keys:
    - { source: kv, name: team, path_prefix: ssh }
    - { source: ca, name: prod, role: login, principals: ["${userInfo().username}"] }
${more}${rest}`);
}

function socketOf(place: Home): string {
  return join(place.path, "a.sock");
}

function client(command: string, args: readonly string[], input = "", place = home): Promise<Finished> {
  const env = { ...place.env, SSH_AUTH_SOCK: socketOf(place) };
  return run(command, args, { cwd: tools.path, env, input });
}

/** Output of `ssh-add -l`. */
async function keys(place = home): Promise<string> {
  return (await client("ssh-add", ["-l"], "", place)).stdout;
}

/** Signs a text by the agent with a public key file, and verifies that. */
async function assertSigns(publicText: string, place = home): Promise<void> {
  const file = join(tools.path, "signer.pub");
  await writeFile(file, publicText);
  const signed = await client("ssh-keygen", ["-Y", "sign", "-n", "file", "-f", file], "text", place);
  assert.equal(signed.code, 0, signed.stderr);
  const [signature, allowed] = [join(tools.path, "text.sig"), join(tools.path, "allowed")];
  await writeFile(signature, signed.stdout);
  await writeFile(allowed, `ada ${publicText}`);
  const args = ["-Y", "verify", "-n", "file", "-f", allowed, "-I", "ada", "-s", signature];
  assert.equal((await client("ssh-keygen", args, "text", place)).code, 0);
}

describe("the SSH agent with keys of a real Vault", () => {
  it("lists the keys of all sources, and names what it cannot use", async () => {
    const listed = await keys();
    assert.match(listed, / plain \(ED25519\)$/m);
    assert.match(listed, / locked \(ED25519\)$/m);
    assert.match(listed, / prod: \S+ \(ED25519-CERT\)$/m);
    assert.equal(listed.trim().split("\n").length, 3);
    const status = await home.ok("status", "--json");
    assert.match(status, /ssh\/broken: the text is not one block between BEGIN and END lines/);
    assert.match(status, /ssh\/denied: .*the store denies it to this token/);
  });

  it("a certificate of the SSH engine logs in to a server that trusts its authority", async () => {
    const { code, stderr } = await client("ssh", [...agentArgs(sshd), "true"]);
    assert.equal(code, 0, stderr);
    assert.match(sshd.output(), /Accepted publickey for \S+ .* ED25519-CERT .* CA /);
  });

  it("signs with a plain key, and with one whose passphrase SSH_ASKPASS gives", async () => {
    await assertSigns(plain.publicText);
    await assertSigns(locked.publicText);
    const { ssh_agent: shown } = JSON.parse(await home.ok("status", "--json")) as {
      ssh_agent: { sources: { identities: { comment: string; state: string }[] }[] };
    };
    const states = shown.sources.flatMap(({ identities }) => identities).map(({ state }) => state);
    assert.deepEqual(states.toSorted(), ["ready", "ready", "unlocked"]);
  });

  it("a key that is written to the store is offered, and a removed one is not", async () => {
    const { privateText } = await sshKeygen(["-t", "ecdsa"]);
    await vault.put("users/ada/ssh/new/key", { private_key: privateText });
    await until(async () => (await keys()).includes("(ECDSA)"));
    await vault.request("DELETE", "kv/metadata/users/ada/ssh/new/key");
    await until(async () => !(await keys()).includes("(ECDSA)"));
  });

  it("a key of an enrolment at the terminal is usable without its passphrase", async () => {
    const own = await tempFolder("agent-enrol");
    // Nobody can be asked here.
    const place = new Home(own.path);
    await configure(
      place,
      "    - { source: enrolments }\n",
      "enrolments: { work/key: { engine: ssh, comment: enrolled } }\n",
    );
    await place.write(".daemon-token", token);
    const use = async (): Promise<void> => {
      await until(async () => (await keys(place)).includes(" enrolled (ED25519)"));
      const lines = (await client("ssh-add", ["-L"], "", place)).stdout.split("\n");
      await assertSigns(`${lines.find((line) => line.endsWith(" enrolled")) ?? ""}\n`, place);
    };
    const { shown } = await runAtTerminal(AGENT_LAUNCHER, ["run"], {
      env: place.env,
      answers: [
        [/passphrase: /, PASSPHRASE],
        [/passphrase again: /, PASSPHRASE],
        [
          /credential stored/,
          async () => {
            await use();
            return CTRL_C;
          },
        ],
      ],
    });
    assert.doesNotMatch(shown, /hunter2/);
    assert.doesNotMatch(await filesBelow(place.path), /hunter2|PRIVATE KEY/);
    await own.remove();
  });

  it("a logout removes the certificate, and the next sign-in gets another", async () => {
    await home.ok("logout");
    await until(async () => !(await keys()).includes("prod:"));
    await home.write(".daemon-token", token);
    await until(async () => (await keys()).includes("prod:"));
    await assertSigns(plain.publicText);
  });

  it("no private key and no passphrase is in a log, a file or the status", async () => {
    const status = await home.ok("status", "--json");
    const shown = `${status}${running.log()}${running.output()}${await filesBelow(home.path)}`;
    assert.doesNotMatch(shown, /hunter2|PRIVATE KEY/);
    for (const text of [plain.privateText, locked.privateText]) {
      for (const line of text.split("\n").slice(2, -2)) assert.ok(!shown.includes(line), line);
    }
  });
});
