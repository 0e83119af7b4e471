import assert from "node:assert/strict";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { git, gitEnvironment, startSshd } from "@devplat/testkit";
import {
  MemorySource,
  agentArgs,
  certify,
  identityOf,
  keyAt,
  keysFolder,
  makeKey,
  startSshAgent,
} from "./ssh-agent.test-kit.ts";

describe("the SSH agent with programs of OpenSSH", () => {
  it("ssh-add lists the keys, and the socket is the user's alone", async () => {
    await using keys = await keysFolder();
    const key = await makeKey(keys.path, "mine");
    await using started = await startSshAgent({
      sources: [new MemorySource("a", [identityOf(key, "mine")])],
    });
    assert.equal((await stat(started.socket)).mode & 0o777, 0o600);
    assert.equal((await stat(dirname(started.socket))).mode & 0o777, 0o700);
    const listed = await started.run("ssh-add", ["-L"]);
    assert.equal(listed.stdout, await readFile(`${key.path}.pub`, "utf8"), listed.stderr);
    const tested = await started.run("ssh-add", ["-T", `${key.path}.pub`]);
    assert.equal(tested.code, 0, tested.stderr);
  });

  it("ssh logs in to a real server, and one audit line says where", async () => {
    const sshd = await startSshd();
    try {
      await using started = await startSshAgent({
        sources: [new MemorySource("a", [identityOf(await keyAt(sshd.userKey), "user")])],
      });
      await started.know(`[127.0.0.1]:${sshd.port} ${sshd.hostKey}`);
      const { code, stdout, stderr } = await started.run("ssh", [...agentArgs(sshd), "echo", "logged in"]);
      assert.equal(code, 0, stderr);
      assert.equal(stdout, "logged in\n");
      const lines = started.log.filter(({ message }) => message.startsWith("SSH signature"));
      assert.equal(lines.length, 1);
      const { pid, fingerprint, purpose, ...fields } = lines[0]?.fields ?? {};
      assert.ok(typeof pid === "number" && pid > 0);
      assert.match(String(fingerprint), /^SHA256:/);
      assert.match(String(purpose), /^login as /);
      assert.deepEqual(fields, {
        source: "a",
        destination: `[127.0.0.1]:${sshd.port}`,
        forwarded: false,
        through: [],
        program: "/usr/bin/ssh",
        outcome: "signed",
      });
      const [source] = started.agent.status().sources;
      assert.equal(source?.identities[0]?.signatures, 1);
      assert.equal(source?.identities[0]?.last_use?.program, "/usr/bin/ssh");
    } finally {
      await sshd.stop();
    }
  });

  it("a key for certain hosts logs in to these, and is withheld from others", async () => {
    const sshd = await startSshd();
    try {
      const place = `[127.0.0.1]:${sshd.port}`;
      const source = new MemorySource("a", []);
      await using started = await startSshAgent({ sources: [source] });
      const logIn = async (): Promise<number> =>
        (await started.run("ssh", [...agentArgs(sshd), "true"])).code;
      const forHosts = async (...hosts: string[]): Promise<void> => {
        source.keys = [identityOf(await keyAt(sshd.userKey), "user", { hosts })];
        source.change();
      };
      await forHosts(place);
      assert.equal(await logIn(), 255, "an unknown host");
      await started.know(`${place} ${sshd.hostKey}`);
      assert.equal(await logIn(), 0);
      await forHosts("other.example.com");
      assert.equal(await logIn(), 255, "another host");
      await forHosts("*", `!${place}`);
      assert.equal(await logIn(), 255, "a rejected host");
      await forHosts("*");
      assert.equal(await logIn(), 0, "any known host");
      await started.know(`${place} ${sshd.hostKey}`, `@revoked * ${sshd.hostKey}`);
      assert.equal(await logIn(), 255, "a revoked key");
      const listed = await started.run("ssh-add", ["-l"]);
      assert.match(listed.stdout, /user \(only for \*\)/);
    } finally {
      await sshd.stop();
    }
  });

  it("hashed lines of known_hosts name a host by a key's hosts or the command line", async () => {
    const sshd = await startSshd();
    try {
      const source = new MemorySource("a", []);
      await using started = await startSshAgent({ sources: [source] });
      const reaches = async (hosts: string[], name: string): Promise<boolean> => {
        source.keys = [identityOf(await keyAt(sshd.userKey), "user", { hosts })];
        source.change();
        const args = agentArgs(sshd);
        const account = args.pop()?.replace("127.0.0.1", name) ?? "";
        const settings = ["-o", "HostName=127.0.0.1", "-o", `HostKeyAlias=[127.0.0.1]:${sshd.port}`];
        return (await started.run("ssh", [...args, ...settings, account, "true"])).code === 0;
      };
      await started.know(`web.example.com ${sshd.hostKey}`);
      const hashed = await started.run("ssh-keygen", ["-q", "-H", "-f", join(started.folder, "known_hosts")]);
      assert.equal(hashed.code, 0, hashed.stderr);
      assert.doesNotMatch(await readFile(join(started.folder, "known_hosts"), "utf8"), /example/);
      assert.equal(await reaches(["web.example.com"], "alias"), true, "the key names the host");
      assert.equal(await reaches(["*.example.com"], "web.example.com"), true, "the command names the host");
      assert.equal(await reaches(["*.example.com"], "alias"), false, "nobody names the host");
      assert.equal(
        await reaches(["*.example.com"], "db.example.com"),
        false,
        "the command names another host",
      );
    } finally {
      await sshd.stop();
    }
  });

  it("ssh-keygen and git sign for the namespaces of the key", async () => {
    await using keys = await keysFolder();
    const key = await makeKey(keys.path, "signer");
    await using started = await startSshAgent({
      sources: [
        new MemorySource("a", [identityOf(key, "signer", { namespaces: ["git"], hosts: ["a.example.com"] })]),
      ],
    });
    const signed = (namespace: string) =>
      started.run("ssh-keygen", ["-Y", "sign", "-n", namespace, "-f", `${key.path}.pub`], { input: "text" });
    // Without the private half, only the agent can sign.
    await writeFile(key.path, "");
    assert.equal((await signed("git")).code, 0);
    assert.notEqual((await signed("file")).code, 0);

    const repository = join(keys.path, "repository");
    await mkdir(repository);
    const env = { ...gitEnvironment(), SSH_AUTH_SOCK: started.socket };
    await writeFile(join(keys.path, "signers"), `a@example.com ${await readFile(`${key.path}.pub`, "utf8")}`);
    const settings = [
      "-c",
      "gpg.format=ssh",
      "-c",
      `user.signingkey=${key.path}.pub`,
      "-c",
      `gpg.ssh.allowedSignersFile=${join(keys.path, "signers")}`,
      "-c",
      "user.name=A",
      "-c",
      "user.email=a@example.com",
    ];
    await git(["init", "-q"], { cwd: repository, env });
    await git([...settings, "commit", "-q", "-S", "--allow-empty", "-m", "signed"], { cwd: repository, env });
    const shown = await git([...settings, "log", "-1", "--format=%G?"], { cwd: repository, env });
    assert.equal(shown, "G");
  });

  it("ssh-add locks and unlocks with few tries", async () => {
    await using keys = await keysFolder();
    const key = await makeKey(keys.path, "mine");
    const source = new MemorySource("a", [identityOf(key, "mine")]);
    await using started = await startSshAgent({ sources: [source] });
    const sshAdd = async (flag: string, passphrase: string): Promise<number> => {
      const askpass = join(started.folder, "askpass");
      await writeFile(askpass, `#!/bin/sh\necho '${passphrase}'\n`, { mode: 0o700 });
      return (
        await started.run("ssh-add", [flag], { env: { SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: "force" } })
      ).code;
    };
    const listed = async (): Promise<string> => (await started.run("ssh-add", ["-l"])).stdout;
    assert.equal(await sshAdd("-x", "right"), 0);
    assert.equal(source.forgotten, 1);
    assert.match(await listed(), /no identities/);
    assert.equal(started.agent.status().locked, true);
    assert.equal(started.agent.status().sources[0]?.identities[0]?.state, "locked");
    assert.notEqual(await sshAdd("-x", "again"), 0);
    assert.notEqual(await sshAdd("-X", "wrong"), 0);
    assert.equal(await sshAdd("-X", "right"), 0);
    assert.match(await listed(), /mine/);
    assert.equal(await sshAdd("-x", "right"), 0);
    for (let tries = 0; tries < 5; tries++) assert.notEqual(await sshAdd("-X", "wrong"), 0);
    assert.notEqual(await sshAdd("-X", "right"), 0, "too many tries");
  });

  it("ssh-add -D hides own keys until they are shown, and adding is refused", async () => {
    await using keys = await keysFolder();
    const key = await makeKey(keys.path, "mine");
    await using started = await startSshAgent({
      sources: [new MemorySource("a", [identityOf(key, "mine")])],
    });
    assert.notEqual((await started.run("ssh-add", ["-q", key.path])).code, 0);
    assert.notEqual((await started.run("ssh-add", ["-q", "-d", key.path])).code, 0);
    assert.equal((await started.run("ssh-add", ["-D"])).code, 0);
    assert.match((await started.run("ssh-add", ["-l"])).stdout, /no identities/);
    assert.equal(started.agent.status().sources[0]?.identities[0]?.state, "hidden");
    started.agent.showKeys();
    assert.match((await started.run("ssh-add", ["-l"])).stdout, /mine/);
  });
});

describe("host certificates", () => {
  it("a key for a host is used where an authority vouches for its name", async () => {
    await using keys = await keysFolder();
    const authority = await makeKey(keys.path, "ca");
    const host = await makeKey(keys.path, "host");
    await certify(host, authority, ["-h", "-n", "127.0.0.1"]);
    const sshd = await startSshd({
      settings: [`HostKey ${host.path}`, `HostCertificate ${host.path}-cert.pub`],
    });
    try {
      const authorityLine = `@cert-authority * ${(await readFile(`${authority.path}.pub`, "utf8")).trim()}`;
      const source = new MemorySource("a", [
        identityOf(await keyAt(sshd.userKey), "user", { hosts: ["127.0.0.1"] }),
      ]);
      const authorities: string[] = [];
      await using started = await startSshAgent({ sources: [source], authorities });
      const known = join(keys.path, "known");
      await writeFile(known, `${authorityLine}\n`);
      const args = agentArgs(sshd).map((each) =>
        each.startsWith("UserKnownHostsFile=") ? `UserKnownHostsFile=${known}` : each,
      );
      assert.equal((await started.run("ssh", [...args, "true"])).code, 255, "nobody vouches for the host");
      authorities.push(authorityLine);
      const { code, stderr } = await started.run("ssh", [...args, "true"]);
      assert.equal(code, 0, stderr);
    } finally {
      await sshd.stop();
    }
  });
});
