import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { appendFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  run,
  spawnGroup,
  tempFolder,
  until,
  type Finished,
  type TempFolder,
} from "@devplat/testkit";
import { Home } from "./agent-stand.ts";

/*
 * `agent ssh-env` and `agent git-signing` with stock git. A stock ssh-agent takes the place of the daemon's: to these commands it
 * is a socket with keys.
 */

let folder: TempFolder;
let home: Home;
let socket: string;
let agent: ReturnType<typeof spawnGroup>;

before(async () => {
  folder = await tempFolder();
});
after(() => folder.remove());
let number = 0;
beforeEach(async () => {
  home = new Home(join(folder.path, String(++number)));
  socket = join(home.path, "a.sock");
  await home.configure(
    `store: { driver: embedded }\nagent: { enabled: true, unix: { path: ${JSON.stringify(socket)} } }\n`,
  );
  agent = spawnGroup("ssh-agent", ["-D", "-a", socket], { env: home.env });
  await until(async () => existsSync(socket));
});
afterEach(async () => {
  if (agent.exitCode !== null || agent.signalCode !== null) return;
  const ended = once(agent, "exit");
  agent.kill("SIGTERM");
  await ended;
});

/** @param options of ssh-add */
async function addKey(comment: string, ...options: string[]): Promise<void> {
  const file = join(home.path, "key");
  await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", file]);
  await run("ssh-add", ["-q", ...options, file], { env: { ...home.env, SSH_AUTH_SOCK: socket } });
  await Promise.all([rm(file), rm(`${file}.pub`)]);
}

function git(args: readonly string[], cwd = home.path): Promise<Finished> {
  return run("git", args, { cwd, env: { ...home.env, SSH_AUTH_SOCK: socket } });
}

async function setting(key: string): Promise<string> {
  return (await git(["config", "--global", "--get", key])).stdout.trim();
}

describe("agent git-signing", () => {
  beforeEach(async () => {
    await addKey("ada@work");
    await git(["config", "--global", "user.email", "ada@example.com"]);
    await git(["config", "--global", "user.name", "Ada"]);
  });

  it("enable: git signs a commit and verifies it; disable restores git's file", async () => {
    const config = await home.read(".gitconfig");
    const shown = await home.ok("git-signing", "enable");
    assert.match(shown, /^Git signs with ada@work \(SHA256:.{43}\)\. A signature was made and verified\.$/m);
    const repository = join(home.path, "repository");
    await git(["init", "--quiet", repository]);
    await git(["commit", "--quiet", "--allow-empty", "-S", "-m", "signed"], repository);
    const { code, stderr } = await git(["verify-commit", "HEAD"], repository);
    assert.equal(code, 0);
    assert.match(stderr, /Good "git" signature for ada@example\.com/);
    const status = JSON.parse(await home.ok("git-signing", "status", "--json")) as Record<string, unknown>;
    assert.deepEqual(
      [status["enabled"], status["format"], status["offered"], status["every_commit"]],
      [true, "ssh", true, false],
    );
    // A second time changes nothing.
    const enabled = await home.read(".gitconfig");
    await home.ok("git-signing", "enable");
    assert.equal(await home.read(".gitconfig"), enabled);
    await home.ok("git-signing", "disable");
    assert.equal(await home.read(".gitconfig"), config);
    assert.match(await home.ok("git-signing", "disable"), /nothing was changed/);
  });

  it("another way of signing is kept without --force, and restored by disable", async () => {
    for (const [key, value] of [
      ["user.signingkey", "0123456789ABCDEF"],
      ["gpg.format", "x509"],
      ["commit.gpgsign", "true"],
      ["gpg.ssh.program", "/opt/other-sign"],
    ] as const) {
      await git(["config", "--global", key, value]);
      const config = await home.read(".gitconfig");
      const refused = await home.agent(["git-signing", "enable"]);
      assert.equal(refused.code, 1, key);
      assert.ok(refused.stderr.includes(`Git signs in another way: ${key} is ${value}`), refused.stderr);
      assert.equal(await home.read(".gitconfig"), config);
      await home.ok("git-signing", "enable", "--force");
      assert.equal(await setting("gpg.format"), "ssh");
      await home.ok("git-signing", "disable");
      assert.equal(await setting(key), value);
      await git(["config", "--global", "--unset", key]);
    }
  });

  it("a file of allowed signers that is set gets one more line", async () => {
    const file = await home.write("signers", "# mine\nbob@example.com ssh-ed25519 AAAA bob");
    await git(["config", "--global", "gpg.ssh.allowedSignersFile", "~/signers"]);
    await home.ok("git-signing", "enable");
    await home.ok("git-signing", "enable");
    const lines = (await home.read("signers")).split("\n");
    assert.deepEqual(lines.slice(0, 2), ["# mine", "bob@example.com ssh-ed25519 AAAA bob"]);
    assert.match(lines[2] ?? "", /^ada@example\.com namespaces="git" ssh-ed25519 \S+ ada@work$/);
    assert.equal(lines.length, 4);
    await home.ok("git-signing", "disable");
    assert.equal(await setting("gpg.ssh.allowedSignersFile"), "~/signers");
    assert.ok(existsSync(file));
  });

  it("--local changes the repository alone", async () => {
    const config = await home.read(".gitconfig");
    const repository = join(home.path, "local");
    await git(["init", "--quiet", repository]);
    const { code, stderr } = await run(AGENT_LAUNCHER, ["git-signing", "enable", "--local"], {
      cwd: repository,
      env: home.env,
    });
    assert.equal(code, 0, stderr);
    assert.equal(await home.read(".gitconfig"), config);
    const local = await git(["config", "--local", "--get", "gpg.format"], repository);
    assert.equal(local.stdout, "ssh\n");
  });

  it("several keys: one is chosen by --key", async () => {
    await addKey("second");
    const refused = await home.agent(["git-signing", "enable"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /several keys[\s\S]*ada@work \(SHA256:[\s\S]*second \(SHA256:/);
    assert.match(await home.ok("git-signing", "enable", "--key", "second"), /^Git signs with second/);
    const unknown = await home.agent(["git-signing", "enable", "--key", "third"]);
    assert.match(unknown.stderr, /offers 0 keys named third/);
  });

  it("a signature that fails changes nothing", async () => {
    const config = await home.read(".gitconfig");
    // The agent cannot ask, so it refuses each signature.
    await addKey("to be confirmed", "-c");
    const refused = await home.agent(["git-signing", "enable", "--key", "to be confirmed"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /git cannot sign a commit: /);
    assert.equal(await home.read(".gitconfig"), config);
    agent.kill("SIGKILL");
    await once(agent, "exit");
    const { code, stderr } = await home.agent(["git-signing", "enable"]);
    assert.equal(code, 1);
    assert.match(stderr, /Cannot list the keys of /);
    assert.equal(await home.read(".gitconfig"), config);
  });

  it("a value that somebody changed after enable is not replaced without --force", async () => {
    await home.ok("git-signing", "enable");
    await git(["config", "--global", "user.signingkey", "key::other"]);
    const refused = await home.agent(["git-signing", "disable"]);
    assert.match(refused.stderr, /user\.signingkey was changed after/);
    assert.equal(await setting("user.signingkey"), "key::other");
    await home.ok("git-signing", "disable", "--force");
    assert.equal(await setting("user.signingkey"), "");
  });

  it("--dry-run tells the key and changes nothing", async () => {
    const config = await home.read(".gitconfig");
    assert.match(await home.ok("git-signing", "enable", "--dry-run"), /would sign with ada@work/);
    assert.equal(await home.read(".gitconfig"), config);
  });
});

describe("agent ssh-env", () => {
  it("a shell that evaluates the line uses the socket", async () => {
    await addKey("ada@work");
    const line = await home.ok("ssh-env", "--shell", "bash");
    const { stdout } = await run("bash", ["-c", `${line}\nssh-add -l`], { env: home.env });
    assert.match(stdout, /ada@work/);
  });

  it("says when the SSH agent is off", async () => {
    await home.configure("store: { driver: embedded }\n");
    const { code, stdout, stderr } = await home.agent(["ssh-env"]);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /The SSH agent is off: agent\.enabled is false\n.*agent reload/);
  });

  it("prints the line also before the daemon listens, and says so", async () => {
    await appendFile(join(home.path, ".config/daemon/config.yaml"), "api: { enabled: true }\n");
    await rm(socket);
    const { code, stdout, stderr } = await home.agent(["ssh-env", "--shell", "sh"]);
    assert.deepEqual([code, stdout], [0, `SSH_AUTH_SOCK='${socket}'; export SSH_AUTH_SOCK;\n`]);
    assert.match(stderr, /does not listen on /);
  });
});

describe("agent ssh-env with several sockets", () => {
  const CONFIGURATION = (path: string): string =>
    `store: { driver: embedded }
agent:
  enabled: true
  unix: { path: ${path} }
  sockets:
    - { path: ~/.ssh/work.sock, keys: [enrolments] }
    - { path: ~/one/x.sock, keys: [enrolments] }
    - { path: ~/two/x.sock, keys: [enrolments] }
`;

  it("takes one by its name or its path, and lists them", async () => {
    await home.configure(CONFIGURATION(socket));
    const work = join(home.path, ".ssh/work.sock");
    const line = `SSH_AUTH_SOCK='${work}'; export SSH_AUTH_SOCK;\n`;
    for (const name of ["work", "~/.ssh/work.sock", work, join(home.path, "one/../.ssh/work.sock")]) {
      assert.equal(await home.ok("ssh-env", name, "--shell", "sh"), line, name);
    }
    // Names that are not unique are paths.
    const [one, two] = [join(home.path, "one/x.sock"), join(home.path, "two/x.sock")];
    assert.equal(
      await home.ok("ssh-env", "--list"),
      `main  ${socket}\nwork  ${work}\n${one}  ${one}\n${two}  ${two}\n`,
    );
    assert.match(await home.ok("ssh-env", "main", "--shell", "sh"), new RegExp(`'${socket}'`));
    assert.match(await home.ok("ssh-env", two, "--shell", "sh"), new RegExp(`'${two}'`));
  });

  it("an unknown one is an error with the names to choose from", async () => {
    await home.configure(CONFIGURATION(socket));
    for (const name of ["x", "a.sock", "/nowhere.sock"]) {
      const { code, stdout, stderr } = await home.agent(["ssh-env", name]);
      assert.deepEqual([code, stdout], [1, ""], name);
      assert.match(stderr, new RegExp(`has no socket '${name}'\\nChoose one of: main, work, `));
    }
    const both = await home.agent(["ssh-env", "--list", "--shell", "sh"]);
    assert.equal(both.code, 1);
    assert.match(both.stderr, /exclude each other|cannot be combined/);
  });

  it("bash and fish complete the names", async () => {
    await home.configure(CONFIGURATION(socket));
    const env = { ...home.env, PATH: `${dirname(AGENT_LAUNCHER)}:${home.env["PATH"]}` };
    const probe = `${await home.ok("completion", "bash")}\nCOMP_WORDS=(agent ssh-env w); COMP_CWORD=2; _agent; echo "\${COMPREPLY[@]}"`;
    assert.equal((await run("bash", ["-c", probe], { env })).stdout, "work\n");
    await home.write("agent.fish", await home.ok("completion", "fish"));
    const asked = `source ${join(home.path, "agent.fish")}; complete -C 'agent ssh-env '`;
    const fish = await run("fish", ["--no-config", "-c", asked], { env });
    const work = join(home.path, ".ssh/work.sock");
    assert.ok(fish.stdout.split("\n").includes(`work\t${work}`), fish.stdout);
  });
});

describe("agent keys", () => {
  it("without a running daemon says how to reach it", async () => {
    const { code, stderr } = await home.agent(["keys"]);
    assert.equal(code, 1);
    assert.match(stderr, /Cannot reach the daemon: nothing answers\n.*api\.enabled: true/);
  });
});
