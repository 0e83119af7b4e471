import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { userInfo } from "node:os";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import { decodePublicKeyLine, fingerprint, verify } from "@devplat/ssh-protocol";
import { goSshClient, onPath, startSshd, type Sshd } from "@devplat/testkit";
import {
  MemorySource,
  identityOf,
  keyAt,
  startSshAgent,
  type TestSshAgent,
} from "../../apps/agent/src/surfaces/ssh-agent/server/ssh-agent.test-kit.ts";

const PYTHON_CLIENT = resolve(import.meta.dirname, "../../tools/clients/ssh-agent/agent_client.py");

/** A server, and an SSH agent with the key of its user. */
async function withServer(
  action: (stand: { sshd: Sshd; agent: TestSshAgent; source: MemorySource }) => Promise<void>,
): Promise<void> {
  const sshd = await startSshd();
  try {
    const source = new MemorySource("a", [identityOf(await keyAt(sshd.userKey), "user")]);
    await using agent = await startSshAgent({ sources: [source] });
    await agent.know(`[127.0.0.1]:${sshd.port} ${sshd.hostKey}`);
    await action({ sshd, agent, source });
  } finally {
    await sshd.stop();
  }
}

describe("the SSH agent with clients of other makes", () => {
  it("PuTTY's plink logs in, and a key for certain hosts is withheld from it", async () => {
    await withServer(async ({ sshd, agent, source }) => {
      await mkdir(join(agent.folder, ".putty"), { recursive: true });
      const hostKey = fingerprint(decodePublicKeyLine(sshd.hostKey).blob);
      const args = ["-ssh", "-batch", "-agent", "-P", String(sshd.port), "-hostkey", hostKey];
      const logIn = () =>
        agent.run(onPath("plink") ?? "plink", [...args, `${userInfo().username}@127.0.0.1`, "echo in"]);
      const { code, stdout, stderr } = await logIn();
      assert.equal(code, 0, stderr);
      assert.equal(stdout, "in\n");
      const made = agent.log.find(({ message }) => message === "SSH signature made");
      assert.equal(made?.fields["forwarded"], true, "it does not say where it connects to");
      assert.equal(agent.agent.status().withheld, 0);
      source.keys = [identityOf(await keyAt(sshd.userKey), "user", { hosts: ["*"] })];
      source.change();
      assert.notEqual((await logIn()).code, 0);
      assert.equal(agent.agent.status().withheld, 1);
    });
  });

  it("a client in Python keeps the framing and gets a signature", async () => {
    await withServer(async ({ sshd, agent }) => {
      const { code, stdout, stderr } = await agent.run("python3", [PYTHON_CLIENT, "a text"]);
      assert.equal(code, 0, stderr);
      const key = await keyAt(sshd.userKey);
      const answers = JSON.parse(stdout) as Record<string, unknown> & { signature: string };
      assert.deepEqual(
        { ...answers, signature: "" },
        {
          extension: 28,
          unknown: 5,
          keys: [{ blob: key.blob.toString("hex"), comment: "user" }],
          signature: "",
        },
      );
      assert.ok(verify(key.pair.publicKey, Buffer.from(answers.signature, "hex"), Buffer.from("a text")));
    });
  });

  it("Go's x/crypto lists the keys and logs in", async () => {
    await withServer(async ({ sshd, agent, source }) => {
      const key = await keyAt(sshd.userKey);
      const listed = await agent.run(goSshClient(), ["list"]);
      assert.equal(listed.stdout, `${fingerprint(key.blob)} user\n`, listed.stderr);
      const args = ["login", `127.0.0.1:${sshd.port}`, userInfo().username, "echo in"];
      const { stdout, stderr } = await agent.run(goSshClient(), args);
      assert.equal(stdout, "in\n", stderr);
      // It sends no session-bind: the key is shown, and signs no login.
      source.keys = [identityOf(key, "user", { hosts: ["*"] })];
      source.change();
      assert.match((await agent.run(goSshClient(), ["list"])).stdout, /user \(only for \*\)/);
      assert.equal((await agent.run(goSshClient(), args)).code, 1);
    });
  });
});
