import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { run, tempFolder, until } from "@devplat/testkit";
import { ask, exchange, startTestAgent } from "../../test/agent.test-kit.ts";
import { KEY_TYPES, keyFolder, type KeyFolder } from "../../test/openssh.test-kit.ts";
import {
  decodeAgentAnswer,
  decodePublicKeyLine,
  decodeSshsig,
  describeSignedData,
  encodeAgentFrame,
  encodePublicKey,
  fingerprint,
  readPrivateKey,
  verify,
  verifySshsig,
  type AddedKey,
} from "../index.ts";

/** A key of each type, as it is added to an agent. */
async function makeKeys(keys: KeyFolder): Promise<AddedKey[]> {
  const added: AddedKey[] = [];
  for (const [name, args] of Object.entries(KEY_TYPES)) {
    const reading = readPrivateKey((await keys.makeKey(name, args)).privateText);
    assert.equal(reading.state, "open");
    if (reading.state === "open") added.push({ ...reading, certificate: undefined });
  }
  return added;
}

/** Runs a program of OpenSSH against an agent. */
const withAgent = (socket: string, command: string, args: readonly string[], cwd: string, input = "") =>
  run(command, args, { cwd, input, env: { PATH: process.env["PATH"], HOME: cwd, SSH_AUTH_SOCK: socket } });

describe("OpenSSH's clients with an agent of this package", () => {
  it("ssh-add lists every key, and ssh-keygen signs with it", async () => {
    await using keys = await keyFolder();
    const added = await makeKeys(keys);
    await using agent = await startTestAgent(added);
    const listed = await withAgent(agent.socket, "ssh-add", ["-l"], keys.path);
    assert.deepEqual(
      listed.stdout
        .trimEnd()
        .split("\n")
        .map((line) => line.split(" ")[1]),
      added.map(({ publicKey }) => fingerprint(encodePublicKey(publicKey))),
    );
    const lines = await withAgent(agent.socket, "ssh-add", ["-L"], keys.path);
    const publicTexts = await Promise.all(Object.keys(KEY_TYPES).map((name) => keys.read(`${name}.pub`)));
    assert.equal(lines.stdout, publicTexts.join(""));

    for (const name of Object.keys(KEY_TYPES)) {
      // With the public half alone, so that only the agent can sign.
      await keys.write("signer.pub", await keys.read(`${name}.pub`));
      const args = ["-Y", "sign", "-n", "git", "-f", "signer.pub"];
      const signed = await withAgent(agent.socket, "ssh-keygen", args, keys.path, "a message");
      assert.equal(signed.code, 0, signed.stderr);
      const signature = decodeSshsig(signed.stdout);
      assert.ok(verifySshsig(signature, Buffer.from("a message")));
      const request = agent.requests.at(-1);
      assert.ok(request?.type === "sign");
      assert.deepEqual(request.key, decodePublicKeyLine(await keys.read(`${name}.pub`)).blob);
      const described = describeSignedData(request.data);
      assert.ok(described.kind === "sshsig" && described.data.namespace === "git");
    }
  });

  it("ssh-add adds and removes keys and certificates with their constraints", async () => {
    await using keys = await keyFolder();
    const types = Object.keys(KEY_TYPES);
    await makeKeys(keys);
    await keys.makeKey("ca", ["-t", "ed25519"]);
    await using agent = await startTestAgent();
    const sshAdd = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await withAgent(agent.socket, "ssh-add", args, keys.path);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    for (const type of types) {
      await keys.keygen(["-q", "-s", "ca", "-I", "id", "-n", "alice", `${type}.pub`]);
      await sshAdd("-q", "-t", "1h", "-c", type);
    }
    const constraints = agent.requests.flatMap((request) =>
      request.type === "add" ? [request.constraints] : [],
    );
    assert.equal(constraints.length, 2 * types.length);
    for (const each of constraints) {
      assert.deepEqual(each, [{ type: "lifetime", seconds: 3600 }, { type: "confirm" }]);
    }
    // Keys and certificates are listed, and the programs accept their comments and types.
    assert.equal((await sshAdd("-L")).trimEnd().split("\n").length, 2 * types.length);
    for (const type of types) assert.ok((await sshAdd("-L")).includes(await keys.read(`${type}-cert.pub`)));
    // It has the agent sign with each key and verifies that itself. With RSA keys this version asks for SHA-1.
    const signers = types.filter((type) => type !== "ssh-rsa");
    await sshAdd("-T", ...signers.flatMap((type) => [`${type}.pub`, `${type}-cert.pub`]));
    const refused = await withAgent(agent.socket, "ssh-add", ["-T", "ssh-rsa.pub"], keys.path);
    assert.match(refused.stderr, /agent refused operation/);
    await sshAdd("-q", "-d", "ssh-ed25519.pub");
    await sshAdd("-q", "-D");
    assert.deepEqual(
      agent.requests.slice(-2).map(({ type }) => type),
      ["remove-all", "unknown"],
    );
  });

  it("ssh-add restricts a key to destinations, and locks the agent", async () => {
    await using keys = await keyFolder();
    await keys.makeKey("id", ["-t", "ed25519"]);
    const hostKey = decodePublicKeyLine((await keys.makeKey("host", ["-t", "ed25519"])).publicText);
    const authority = decodePublicKeyLine((await keys.makeKey("ca", ["-t", "ecdsa"])).publicText);
    const known = [
      `jump.example.com ${hostKey.type} ${hostKey.blob.toString("base64")}`,
      `@cert-authority *.example.com ${authority.type} ${authority.blob.toString("base64")}`,
    ];
    await keys.write("known", `${known.join("\n")}\n`);
    await using agent = await startTestAgent();
    const args = [
      "-q",
      "-H",
      "known",
      "-h",
      "jump.example.com",
      "-h",
      "jump.example.com>alice@web.example.com",
      "id",
    ];
    const { code, stderr } = await withAgent(agent.socket, "ssh-add", args, keys.path);
    assert.equal(code, 0, stderr);
    const request = agent.requests.find(({ type }) => type === "add");
    assert.ok(request?.type === "add");
    const plain = { blob: hostKey.blob, isAuthority: false };
    const signing = { blob: authority.blob, isAuthority: true };
    const jump = { user: "", host: "jump.example.com", keys: [plain, signing] };
    assert.deepEqual(request.constraints, [
      {
        type: "restrict-destination",
        hops: [
          { from: { user: "", host: "", keys: [] }, to: jump },
          { from: jump, to: { user: "alice", host: "web.example.com", keys: [signing] } },
        ],
      },
    ]);

    await keys.write("askpass", "#!/bin/sh\necho the passphrase\n");
    await run("chmod", ["700", "askpass"], { cwd: keys.path });
    const env = { PATH: process.env["PATH"], SSH_AUTH_SOCK: agent.socket, SSH_ASKPASS_REQUIRE: "force" };
    for (const [flag, type] of [
      ["-x", "lock"],
      ["-X", "unlock"],
    ] as const) {
      const result = await run("ssh-add", [flag], {
        cwd: keys.path,
        env: { ...env, SSH_ASKPASS: join(keys.path, "askpass") },
      });
      assert.equal(result.code, 0, result.stderr);
      const last = agent.requests.at(-1);
      assert.ok(last?.type === type && last.passphrase.reveal().toString() === "the passphrase");
    }
  });

  it("keeps the framing after messages that it does not know or cannot read", async () => {
    await using agent = await startTestAgent();
    const messages = [
      Buffer.of(200, 1, 2, 3),
      Buffer.concat([Buffer.of(27, 0, 0, 0, 3), Buffer.from("a@bdata")]),
      Buffer.of(13, 255, 255, 255, 255),
      Buffer.of(11),
    ];
    const answers = await exchange(
      agent.socket,
      Buffer.concat(messages.map((each) => encodeAgentFrame(each))),
      4,
    );
    assert.deepEqual(
      answers.map((answer) => decodeAgentAnswer(answer).type),
      ["failure", "extension-failure", "failure", "identities"],
    );
    assert.deepEqual(await exchange(agent.socket, Buffer.of(255, 255, 255, 255, 11), 1), []);
  });
});

describe("OpenSSH's agent with requests of this package", () => {
  it("takes keys, lists and removes them, signs, locks and fails as it should", async () => {
    await using keys = await keyFolder();
    const folder = await tempFolder("ssh-agent");
    const socket = join(folder.path, "agent.sock");
    const child = spawn("ssh-agent", ["-D", "-a", socket], { stdio: "ignore" });
    const ended = once(child, "exit");
    try {
      await until(() => existsSync(socket));
      const added = await makeKeys(keys);
      for (const key of added) {
        const name = key.publicKey.type;
        assert.deepEqual(await ask(socket, { type: "add", key, constraints: [] }), { type: "success" });
        await keys.makeKey(`${name}-ca`, ["-t", "ed25519"]);
        await keys.keygen(["-q", "-s", `${name}-ca`, "-I", "id", "-n", "alice", `${name}.pub`]);
        const certificate = decodePublicKeyLine(await keys.read(`${name}-cert.pub`)).blob;
        const constraints = [
          { type: "lifetime", seconds: 600 },
          { type: "restrict-destination", hops: [] },
        ] as const;
        const request = { type: "add", key: { ...key, certificate }, constraints } as const;
        assert.deepEqual(await ask(socket, request), { type: "success" });
        const data = Buffer.from("data");
        const blob = encodePublicKey(key.publicKey);
        const signed = await ask(socket, { type: "sign", key: blob, data, flags: 4 });
        assert.ok(signed.type === "signature" && verify(key.publicKey, signed.signature, data));
      }
      const listed = await ask(socket, { type: "identities" });
      assert.ok(listed.type === "identities");
      assert.equal(listed.identities.length, 2 * added.length);
      assert.equal(listed.identities[0]?.comment, "ssh-ed25519 key");

      const passphrase = new Secret(Buffer.from("a passphrase"));
      assert.deepEqual(await ask(socket, { type: "lock", passphrase }), { type: "success" });
      assert.deepEqual(await ask(socket, { type: "identities" }), { type: "identities", identities: [] });
      assert.deepEqual(await ask(socket, { type: "unlock", passphrase }), { type: "success" });
      const [first] = added as [AddedKey];
      const key = encodePublicKey(first.publicKey);
      assert.deepEqual(await ask(socket, { type: "remove", key }), { type: "success" });
      assert.deepEqual(await ask(socket, { type: "sign", key, data: key, flags: 0 }), { type: "failure" });
      assert.deepEqual(await ask(socket, { type: "remove-all" }), { type: "success" });
      assert.deepEqual(await ask(socket, { type: "identities" }), { type: "identities", identities: [] });
      const unknown = { type: "extension", name: "a@example.com", content: Buffer.alloc(0) } as const;
      assert.match((await ask(socket, unknown)).type, /failure$/);
    } finally {
      child.kill();
      await ended;
      await folder.remove();
    }
  });
});
