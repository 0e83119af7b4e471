import assert from "node:assert/strict";
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
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
import type { SshAgentIdentityView, SshAgentStatus } from "../../apps/agent/src/ssh-agent-view.ts";
import { filesBelow, startSshEngine } from "./agent-ssh-agent-stand.ts";
import { Home, daemon, webUrl, type RunningAgent } from "./agent-stand.ts";

/*
 * The SSH agent of a real daemon with a real Vault, OpenSSH's ssh, ssh-add and ssh-keygen, a real sshd, and git.
 */

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
const SOCKET = "run/daemon/ssh-agent.sock";
/** Passphrases of keys. The programs below get them. */
const ASKED = "planted passphrase of the asked key";
const TYPED = "planted passphrase of the typed key";
const WIZARD = "planted passphrase of the wizard";

let folder: TempFolder;
let vault: Vault;
let sshd: Sshd;
let home: Home;
let agent: RunningAgent;
let web: string;
/** Private keys, as lines of their files that nothing else has. */
const privateLines: string[] = [];

function at(name: string): string {
  return join(home.path, name);
}

/** Makes a key, stores it in Vault, and leaves only the public half. */
async function storeKey(name: string, passphrase = ""): Promise<void> {
  const file = at(name);
  // One round: how long a passphrase is stretched is tested elsewhere.
  await run("ssh-keygen", ["-q", "-a", "1", "-t", "ed25519", "-N", passphrase, "-C", name, "-f", file]);
  const key = await readFile(file, "utf8");
  privateLines.push(key.split("\n")[2] ?? assert.fail());
  await vault.put(`users/ada/ssh/${name}`, { private_key: key });
  await rm(file);
}

function withAgent(program: string, args: readonly string[], cwd = home.path): Promise<Finished> {
  return run(program, args, { cwd, env: { ...home.env, SSH_AUTH_SOCK: at(SOCKET) } });
}

/** Logs in to the server with the keys of the agent alone. */
function logIn(...options: string[]): Promise<Finished> {
  const settings = [
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    `UserKnownHostsFile=${at(".ssh/known_hosts")}`,
    ...options,
  ].flatMap((each) => ["-o", each]);
  const target = `${userInfo().username}@${sshd.address}`;
  return withAgent("ssh", ["-F", "none", ...settings, "-p", String(sshd.port), target, "echo in"]);
}

/** Signs a file with the key of a public key file. */
async function signWith(publicKey: string): Promise<Finished> {
  await rm(at("document.sig"), { force: true });
  await writeFile(at("document"), "text");
  return await withAgent("ssh-keygen", ["-Y", "sign", "-n", "file", "-f", at(publicKey), at("document")]);
}

async function status(): Promise<SshAgentStatus> {
  return JSON.parse(await home.ok("keys", "list", "--json")) as SshAgentStatus;
}

async function identity(name: string): Promise<SshAgentIdentityView | undefined> {
  return (await status()).sources
    .flatMap(({ identities }) => identities)
    .find(({ comment }) => comment.includes(name));
}

async function configure(more = ""): Promise<void> {
  await home.configure(`store: { driver: vault, address: "${vault.address}", auth_method: token, username: ada }
api: { enabled: true }
web: { enabled: true, listen: "127.0.0.1:0" }
enrolments:
  work/key: { engine: ssh }
agent:
  enabled: true
  keys:
    - source: enrolments
    - { source: kv, name: team, path_prefix: ssh/ }
    - { source: ca, name: prod, role: developer }
${more}`);
}

before(async () => {
  folder = await tempFolder("agent-ssh-agent");
  vault = await startVault();
  const path = folder.path;
  home = new Home(path, {
    XDG_RUNTIME_DIR: join(path, "run"),
    SSH_ASKPASS: join(path, "askpass"),
    SSH_ASKPASS_REQUIRE: "force",
  });
  await home.write("run/.keep", "");
  await chmod(at("run"), 0o700);
  // Notes what it is asked. A confirmation succeeds if the file `allow` is there.
  await home.write(
    "askpass",
    `#!/bin/sh
printf '%s|%s\\n' "$SSH_ASKPASS_PROMPT" "$1" >> "${at("asked")}"
if [ "$SSH_ASKPASS_PROMPT" = confirm ]; then [ -e "${at("allow")}" ]; exit; fi
cat "${at("answer")}"
`,
    0o700,
  );
  await home.write("answer", `${ASKED}\n`);
  await home.write(".daemon-token", vault.rootToken);
  await storeKey("plain");
  await storeKey("asked", ASKED);
  await storeKey("typed", TYPED);
  await home.write("ca.pub", await startSshEngine(vault, "developer"));
  await home.write("principals", "ada\n");
  await home.write("authorized", await readFile(at("plain.pub"), "utf8"));
  sshd = await startSshd({
    settings: [
      `AuthorizedKeysFile ${at("authorized")}`,
      `TrustedUserCAKeys ${at("ca.pub")}`,
      `AuthorizedPrincipalsFile ${at("principals")}`,
    ],
  });
  await home.write(".ssh/known_hosts", `[${sshd.address}]:${sshd.port} ${sshd.hostKey}\n`);
  await configure();
  agent = await daemon(home, async () => (await withAgent("ssh-add", ["-l"])).code === 0);
  web = await webUrl(agent);
});
after(async () => {
  await agent?.stop();
  await Promise.all([sshd?.stop(), vault?.stop()]);
  await folder.remove();
});

describe("the SSH agent of the daemon", { timeout: TIMEOUT_MS }, () => {
  it("lists keys of secrets and a certificate of the store", async () => {
    await until(async () => (await withAgent("ssh-add", ["-l"])).stdout.includes("ED25519-CERT"));
    const { stdout } = await withAgent("ssh-add", ["-l"]);
    for (const name of ["plain", "asked", "typed"]) assert.match(stdout, new RegExp(`\\b${name}\\b`));
    const lines = (await withAgent("ssh-add", ["-L"])).stdout;
    const [type, key] = (await readFile(at("plain.pub"), "utf8")).split(" ");
    assert.ok(lines.includes(`${type} ${key}`));
    assert.equal((await identity("plain"))?.state, "ready");
    assert.equal((await identity("asked"))?.state, "needs-passphrase");
  });

  it("ssh logs in with a key, and the status and the log name the use", async () => {
    const login = await logIn("CertificateFile=none");
    assert.deepEqual([login.code, login.stdout], [0, "in\n"], login.stderr + agent.log());
    await until(async () => (await identity("plain"))?.last_use !== null);
    const used = await identity("plain");
    assert.equal(used?.last_use?.forwarded, false);
    assert.match(used?.last_use?.program ?? "", /ssh$/);
    assert.ok(agent.log().includes('"msg":"SSH signature made"'));
  });

  it("ssh logs in with a certificate alone", async () => {
    await home.write("authorized", "");
    try {
      const login = await logIn();
      assert.deepEqual([login.code, login.stdout], [0, "in\n"], login.stderr);
      assert.match(sshd.output(), /Accepted publickey .* ED25519-CERT/);
    } finally {
      await home.write("authorized", await readFile(at("plain.pub"), "utf8"));
    }
  });

  it("a managed forward logs in with a key of the SSH agent", async () => {
    const { signatures } = await status();
    const target = [sshd.address, "--port", String(sshd.port), "--socket", at("forward/daemon.sock")];
    await home.ok("ssh", "add", ...target, "--accept-host-key");
    await until(
      async () => (await home.ok("ssh", "list")).includes(" connected "),
      () => agent.log(),
    );
    assert.ok((await status()).signatures.signed > signatures.signed);
    await home.ok("ssh", "remove", sshd.address);
  });

  it("a key with a passphrase asks by SSH_ASKPASS, once", async () => {
    assert.equal((await signWith("asked.pub")).code, 0, agent.log());
    assert.equal((await signWith("asked.pub")).code, 0);
    const asked = (await home.read("asked")).trim().split("\n");
    assert.equal(asked.length, 1);
    assert.match(asked[0] ?? "", /^\|Enter passphrase for the SSH key ".*asked.*" \(SHA256:.{43}\):$/);
    assert.equal((await identity("asked"))?.state, "unlocked");
    await rm(at("asked"));
  });

  it("a wrong passphrase of SSH_ASKPASS refuses the signature, and the status says why", async () => {
    await home.write("answer", "not the passphrase\n");
    assert.notEqual((await signWith("typed.pub")).code, 0);
    const { refusals } = await status();
    assert.ok((refusals[0]?.reason ?? "").length > 0);
    assert.equal((await identity("typed"))?.state, "needs-passphrase");
    await rm(at("asked"), { force: true });
  });

  it("agent keys unlock opens a key by its name", async () => {
    const { comment = "" } = (await identity("typed")) ?? {};
    const unlock = async (name: string, passphrase: string): Promise<Finished> => {
      const file = await home.write("input", `${passphrase}\n`);
      const script = '"$0" keys unlock "$1" --passphrase-stdin < "$2"';
      return await run("sh", ["-c", script, AGENT_LAUNCHER, name, file], { env: home.env });
    };
    const wrong = await unlock(comment, "wrong passphrase");
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /passphrase/);
    const unknown = await unlock("nothing", TYPED);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /has no key "nothing"/);
    assert.match(unknown.stderr, /'agent keys' lists the keys/);
    assert.doesNotMatch(unknown.stderr, /\/api\//);
    // At a terminal nobody is asked for the passphrase of a key that does not exist.
    const typed = await runAtTerminal(AGENT_LAUNCHER, ["keys", "unlock", "nothing"], { env: home.env });
    assert.equal(typed.code, 1);
    assert.match(typed.shown, /has no key "nothing"/);
    assert.doesNotMatch(typed.shown, /Passphrase/);
    const unasked = await home.agent(["keys", "unlock", comment]);
    assert.equal(unasked.code, 1);
    assert.match(unasked.stderr, /there is no terminal\nUse --passphrase-stdin\./);
    const right = await unlock(comment, TYPED);
    assert.deepEqual([right.code, right.stdout], [0, `unlocked ${comment}\n`], right.stderr);
    assert.equal((await identity("typed"))?.state, "unlocked");
    assert.equal((await signWith("typed.pub")).code, 0);
  });

  it("keys show says that the agent is locked, and how to unlock it", async () => {
    const locked = await withAgent("ssh-add", ["-x"]);
    assert.equal(locked.code, 0, locked.stderr);
    assert.match(await home.ok("keys", "show"), /^no key is shown: The SSH agent is locked; 'ssh-add -X'/);
    const signing = await home.agent(["git-signing", "enable"]);
    assert.equal(signing.code, 1);
    assert.match(signing.stderr, /The SSH agent is locked; 'ssh-add -X' unlocks it/);
    const unlocked = await withAgent("ssh-add", ["-X"]);
    assert.equal(unlocked.code, 0, unlocked.stderr);
    assert.equal(await home.ok("keys", "show"), "the daemon's keys are shown\n");
    await rm(at("asked"), { force: true });
  });

  it("keys lists the paths of keys, and says how hidden keys are shown again", async () => {
    assert.match(await home.ok("keys"), /PATH[^]* ssh\/plain /);
    assert.equal((await withAgent("ssh-add", ["-D"])).code, 0);
    const hidden = await home.ok("keys");
    assert.match(hidden, / hidden /);
    assert.doesNotMatch(hidden, /hidden until/);
    assert.match(hidden, /'ssh-add -D' has hidden the daemon's keys; 'agent keys show' shows them again/);
    await home.ok("keys", "show");
  });

  it("ssh-env --list refuses the name of a socket", async () => {
    const { code, stderr } = await home.agent(["ssh-env", "--list", "main"]);
    assert.equal(code, 1);
    assert.match(stderr, /--list takes no name of a socket/);
  });

  it("a key that secrets put has stored is listed immediately, also without events", async () => {
    const made = await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "put", "-f", at("put")]);
    assert.equal(made.code, 0, made.stderr);
    assert.doesNotMatch((await withAgent("ssh-add", ["-l"])).stdout, / put /);
    await home.ok("secrets", "put", "ssh/put", `private_key=@${at("put")}`);
    assert.match((await withAgent("ssh-add", ["-l"])).stdout, / put /);
    await home.ok("secrets", "rm", "ssh/put", "--yes");
    assert.doesNotMatch((await withAgent("ssh-add", ["-l"])).stdout, / put /);
  });

  it("git signs and verifies a commit", async () => {
    await withAgent("git", ["config", "--global", "user.email", "ada@example.com"]);
    await withAgent("git", ["config", "--global", "user.name", "Ada"]);
    const name = (await identity("plain"))?.fingerprint ?? "";
    await home.ok("git-signing", "enable", "--key", name);
    await withAgent("git", ["init", "--quiet", "repository"]);
    const repository = at("repository");
    const commit = await withAgent(
      "git",
      ["commit", "--quiet", "--allow-empty", "-S", "-m", "x"],
      repository,
    );
    assert.equal(commit.code, 0, commit.stderr);
    const verified = await withAgent("git", ["verify-commit", "HEAD"], repository);
    assert.match(verified.stderr, /Good "git" signature for ada@example\.com/);
    await home.ok("git-signing", "disable");
  });

  it("a key of the wizard can be used without its passphrase typed again", async () => {
    const form = (action: string, more: Record<string, string> = {}): Promise<Response> =>
      fetch(`${web}/ui/enrolments/ssh/work/key/`, {
        method: "POST",
        headers: { Origin: web, "Content-Type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({ action, ...more }).toString(),
        redirect: "manual",
      });
    assert.equal((await form("start")).status, 303);
    assert.equal((await form("answer", { "field.0": WIZARD, "again.0": WIZARD })).status, 303);
    interface Made {
      readonly data: {
        readonly public_key: string;
        readonly private_key: string;
        readonly fingerprint: string;
      };
    }
    let made: Made | undefined;
    await until(async () => {
      const { status: found, body } = await vault.request("GET", "kv/data/users/ada/work/key");
      if (found === 200) made = body["data"] as Made;
      return made !== undefined;
    });
    const { data } = made ?? assert.fail();
    const state = async (): Promise<string | undefined> =>
      (await status()).sources
        .flatMap(({ identities }) => identities)
        .find(({ fingerprint }) => fingerprint === data.fingerprint)?.state;
    await until(
      async () => (await state()) === "unlocked",
      () => agent.log(),
    );
    privateLines.push(data.private_key.split("\n")[2] ?? assert.fail());
    await home.write("wizard.pub", data.public_key);
    await rm(at("asked"), { force: true });
    assert.equal((await signWith("wizard.pub")).code, 0);
    await assert.rejects(home.read("asked"), { code: "ENOENT" });
  });

  it("confirm: the user is asked what is verified, and a refusal is final", async () => {
    await configure("  confirm: always\n");
    await home.ok("reload");
    await until(async () => {
      await rm(at("asked"), { force: true });
      await signWith("plain.pub");
      return (await home.read("asked").catch(() => "")) !== "";
    });
    const prompt = await home.read("asked");
    assert.match(prompt, /^confirm\|Allow the use of the SSH key ".*plain.*" \(SHA256:.{43}\)\?$/m);
    assert.match(prompt, /^(?:verified|claimed): /m);
    assert.notEqual((await signWith("plain.pub")).code, 0);
    await home.write("allow", "");
    assert.equal((await signWith("plain.pub")).code, 0);
    await configure();
    await home.ok("reload");
  });

  it("status, metrics and doctor show it", async () => {
    const text = await home.ok("status");
    assert.match(text, /^SSH Agent$/m);
    assert.match(text, /^ {2}Signatures: \d+ made, \d+ refused$/m);
    const shown = JSON.parse(await home.ok("status", "--json")) as { ssh_agent?: SshAgentStatus };
    assert.equal(shown.ssh_agent?.socket, at(SOCKET));
    const metrics = await (await fetch(`${web}/metrics`)).text();
    assert.match(metrics, /^agent_ssh_agent_signatures_total\{outcome="signed"\} [1-9]/m);
    assert.match(metrics, /^agent_ssh_agent_identities\{source="team"\} 3$/m);
    const doctor = await home.agent(["doctor"], { SSH_AUTH_SOCK: at(SOCKET) });
    assert.match(doctor.stdout, /SSH agent.*answers on /);
    assert.match(doctor.stdout, /SSH_AUTH_SOCK.*is the socket of the daemon/);
  });

  it("a reload turns it off and on", async () => {
    const text = await home.read(".config/daemon/config.yaml");
    await home.configure(text.replace("agent:\n  enabled: true", "agent:\n  enabled: false"));
    await home.ok("reload");
    await until(async () => (await withAgent("ssh-add", ["-l"])).code === 2);
    assert.equal((await fetch(`${web}/api/v1/ssh-agent`)).status, 404);
    await home.configure(text);
    await home.ok("reload");
    await until(async () => (await withAgent("ssh-add", ["-l"])).stdout.includes("plain"));
    // Keys that were opened do not outlive the agent.
    assert.equal((await identity("typed"))?.state, "needs-passphrase");
  });

  it("sign-out forgets keys that were opened", async () => {
    await home.write("answer", `${ASKED}\n`);
    await until(async () => (await signWith("asked.pub")).code === 0);
    await home.ok("logout");
    // A signature would wait 30 s for the next sign-in.
    await until(async () => (await identity("asked"))?.state === "needs-passphrase");
    await home.write(".daemon-token", vault.rootToken);
  });

  it("no private key and no passphrase is in a log, a file or the environment", async () => {
    const ofProcess = await Promise.all(
      ["environ", "cmdline"].map((name) => readFile(`/proc/${agent.pid}/${name}`, "latin1")),
    );
    // The keys and the answers of the test itself are at the top of the home.
    const folders = await Promise.all([".local", ".config", "run"].map((name) => filesBelow(at(name))));
    const seen = [agent.log(), agent.output(), ...ofProcess, ...folders];
    for (const planted of [ASKED, TYPED, WIZARD, ...privateLines]) {
      assert.ok(!seen.some((text) => text.includes(planted)), planted);
    }
  });
});
