import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { describe, it } from "node:test";
import { run, startSshd } from "@devplat/testkit";
import { startTestAgent } from "../../test/agent.test-kit.ts";
import {
  SESSION_BIND,
  decodeSessionBind,
  describeSignedData,
  encodePublicKey,
  readPrivateKey,
  verifySessionBind,
} from "../index.ts";

describe("a login with ssh and a key of an agent", () => {
  it("binds the session with a sound signature, and signs a request for the bound host", async () => {
    const sshd = await startSshd();
    try {
      const identity = sshd.clientArgs[sshd.clientArgs.indexOf("-i") + 1] ?? "";
      const reading = readPrivateKey(await readFile(identity, "utf8"));
      assert.equal(reading.state, "open");
      if (reading.state !== "open") return;
      await using agent = await startTestAgent([{ ...reading, certificate: undefined }]);
      const env = { PATH: process.env["PATH"], SSH_AUTH_SOCK: agent.socket };
      const { code, stdout, stderr } = await run("ssh", [...sshd.clientArgs, "echo", "logged in"], { env });
      assert.equal(code, 0, stderr);
      assert.equal(stdout, "logged in\n");

      const [first] = agent.requests;
      assert.ok(first?.type === "extension" && first.name === SESSION_BIND);
      const bind = decodeSessionBind(first.content);
      assert.ok(verifySessionBind(bind));
      assert.equal(bind.isForwarding, false);
      const signed = agent.requests.find(({ type }) => type === "sign");
      assert.ok(signed?.type === "sign");
      const described = describeSignedData(signed.data);
      assert.deepEqual(described, {
        kind: "userauth",
        request: {
          sessionId: bind.sessionId,
          user: userInfo().username,
          algorithm: "ssh-ed25519",
          publicKey: encodePublicKey(reading.publicKey),
          hostKey: bind.hostKey,
        },
      });
    } finally {
      await sshd.stop();
    }
  });
});
