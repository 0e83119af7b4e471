import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  SESSION_BIND,
  encodeAgentFrame,
  encodeAgentRequest,
  encodeSessionBind,
  encodeSshsigData,
  encodeUserauthRequest,
  sign,
  verify,
  type AgentRequest,
} from "@devplat/ssh-protocol";
import { run, until } from "@devplat/testkit";
import type { SshIdentity } from "../identity.ts";
import { RawClient } from "./raw-client.test-kit.ts";
import {
  MemorySource,
  identityOf,
  keysFolder,
  makeKey,
  startSshAgent,
  type TestKey,
  type TestSshAgent,
} from "./ssh-agent.test-kit.ts";

const FAILURE = { type: "failure" } as const;
const MIB = 1024 * 1024;

const bind = (host: TestKey, sessionId: Buffer, isForwarding: boolean): AgentRequest => ({
  type: "extension",
  name: SESSION_BIND,
  content: encodeSessionBind({
    hostKey: host.blob,
    sessionId,
    signature: sign(host.pair, sessionId),
    isForwarding,
  }),
});
const loginData = (key: TestKey, sessionId: Buffer, hostKey?: Buffer): Buffer =>
  encodeUserauthRequest({
    sessionId,
    user: "alice",
    algorithm: key.pair.publicKey.type,
    publicKey: key.blob,
    hostKey,
  });
const signRequest = (key: TestKey, data: Buffer, flags = 0): AgentRequest => ({
  type: "sign",
  key: key.blob,
  data,
  flags,
});

/** An agent with a free key, and one for the host `web`. */
interface Stand {
  readonly test: TestSshAgent;
  readonly free: TestKey;
  readonly limited: TestKey;
  readonly web: TestKey;
  readonly other: TestKey;
  readonly source: MemorySource;
}

async function withAgent(action: (stand: Stand) => Promise<void>): Promise<void> {
  await using keys = await keysFolder();
  const [free, limited, web, other] = [
    await makeKey(keys.path, "free"),
    await makeKey(keys.path, "limited"),
    await makeKey(keys.path, "web"),
    await makeKey(keys.path, "other"),
  ];
  const source = new MemorySource("a", [
    identityOf(free, "free"),
    identityOf(limited, "limited", { hosts: ["web"] }),
  ]);
  await using test = await startSshAgent({ sources: [source] });
  await test.know(`web ssh-ed25519 ${web.blob.toString("base64")}`);
  await action({ test, free, limited, web, other, source });
}

describe("messages of a hostile client", () => {
  it("a length of 4 GiB, and one above 256 KiB, closes the connection", async () => {
    await withAgent(async ({ test }) => {
      for (const length of [0xffff_ffff, 256 * 1024 + 1, 0]) {
        using client = await RawClient.connect(test.socket);
        const bytes = Buffer.alloc(5);
        bytes.writeUInt32BE(length);
        client.send(bytes);
        assert.equal(await client.next(), undefined);
      }
    });
  });

  it("unknown and malformed messages are refused, and the framing is kept", async () => {
    await withAgent(async ({ test }) => {
      using client = await RawClient.connect(test.socket);
      const table: [message: Buffer, type: string][] = [
        [Buffer.of(200, 1, 2, 3), "failure"],
        [Buffer.of(1), "failure"],
        [Buffer.concat([Buffer.of(27, 0, 0, 0, 3), Buffer.from("a@bdata")]), "extension-failure"],
        [Buffer.of(27), "failure"],
        [Buffer.of(13, 255, 255, 255, 255), "failure"],
        [Buffer.concat([Buffer.of(13), Buffer.alloc(12)]), "failure"],
        [Buffer.of(17, 0, 0, 0, 1, 65), "failure"],
        [Buffer.of(11, 0), "failure"],
        [Buffer.alloc(256 * 1024, 200), "failure"],
      ];
      for (const [message, type] of table) {
        client.sendMessage(message);
        assert.equal((await client.next())?.type, type);
      }
      const query = await client.ask({ type: "extension", name: "query", content: Buffer.alloc(0) });
      assert.ok(query?.type === "extension-response" && query.content.includes(SESSION_BIND));
      assert.equal((await client.ask({ type: "identities" }))?.type, "identities");
    });
  });

  it("any bytes in any pieces get one answer for each message", async () => {
    await withAgent(async ({ test }) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { minLength: 1, maxLength: 5 }),
          fc.nat(20),
          async (messages, cut) => {
            using client = await RawClient.connect(test.socket);
            for (const message of messages) {
              // Lock and unlock would change the agent for the next round.
              const bytes = [22, 23, 19].includes(message[0] ?? 0) ? Buffer.of(200) : Buffer.from(message);
              const length = Buffer.alloc(4);
              length.writeUInt32BE(bytes.length);
              const frame = Buffer.concat([length, bytes]);
              client.send(frame.subarray(0, cut));
              client.send(frame.subarray(cut));
            }
            for (let count = 0; count < messages.length; count++)
              assert.ok((await client.next()) !== undefined);
            assert.equal((await client.ask({ type: "identities" }))?.type, "identities");
          },
        ),
        { numRuns: 50 },
      );
    });
  });

  it("a client that never reads its answers is not read from any more", async () => {
    await withAgent(async ({ test, free, source }) => {
      // A long list, so that few answers fill the socket.
      source.keys = Array.from({ length: 1000 }, (_, at) =>
        identityOf({ ...free, blob: randomBytes(51) }, `key ${at} ${"x".repeat(100)}`),
      );
      source.change();
      const socket = connect(test.socket);
      await once(socket, "connect");
      socket.pause();
      const requests = Buffer.alloc(4 * MIB);
      for (let at = 0; at + 5 <= requests.length; at += 5) requests.set([0, 0, 0, 1, 11], at);
      socket.write(requests);
      // It takes a message and a part of the rest; what it does not read stays here.
      await until(() => source.listings > 0 && socket.writableLength > 2 * MIB);
      const { external, arrayBuffers } = process.memoryUsage();
      assert.ok(external + arrayBuffers < 256 * MIB);
      using other = await RawClient.connect(test.socket);
      assert.equal((await other.ask({ type: "identities" }))?.type, "identities");
      socket.destroy();
    });
  });

  it("the 65th connection closes the one that is idle for the longest time", async () => {
    await withAgent(async ({ test }) => {
      const clients: RawClient[] = [];
      for (let count = 0; count < 64; count++) {
        const client = await RawClient.connect(test.socket);
        assert.equal((await client.ask({ type: "identities" }))?.type, "identities");
        clients.push(client);
      }
      const [first, second] = clients;
      assert.ok(first !== undefined && second !== undefined);
      assert.equal((await first.ask({ type: "identities" }))?.type, "identities");
      using next = await RawClient.connect(test.socket);
      assert.equal((await next.ask({ type: "identities" }))?.type, "identities");
      assert.equal(await second.next(), undefined);
      assert.deepEqual(
        clients.filter((each) => each.isClosed),
        [second],
      );
      for (const client of clients) client[Symbol.dispose]();
    });
  });

  it("150 connections with half a message do not keep ssh-add out", async () => {
    await withAgent(async ({ test }) => {
      const clients: RawClient[] = [];
      for (let count = 0; count < 150; count++) {
        const client = await RawClient.connect(test.socket);
        client.send(Buffer.of(0, 0, 0, 9, 11));
        clients.push(client);
      }
      const listed = await test.run("ssh-add", ["-l"]);
      assert.equal(listed.code, 0, listed.stderr);
      assert.match(listed.stdout, /free/);
      await until(() => clients.filter((each) => !each.isClosed).length < 64);
      for (const client of clients) client[Symbol.dispose]();
    });
  });

  it("forwarded connections are closed before idle ones of this machine", async () => {
    await withAgent(async ({ test, web, source }) => {
      using local = await RawClient.connect(test.socket);
      assert.equal((await local.ask({ type: "identities" }))?.type, "identities");
      const clients: RawClient[] = [];
      for (let count = 0; count < 150; count++) {
        const client = await RawClient.connect(test.socket);
        assert.equal((await client.ask(bind(web, randomBytes(32), true)))?.type, "success");
        client.send(Buffer.of(0, 0, 0, 9, 11));
        clients.push(client);
      }
      const { listings } = source;
      source.change();
      assert.equal((await local.ask({ type: "identities" }))?.type, "identities");
      assert.equal(source.listings, listings + 1);
      const listed = await test.run("ssh-add", ["-l"]);
      assert.equal(listed.code, 0, listed.stderr);
      assert.equal(local.isClosed, false);
      for (const client of clients) client[Symbol.dispose]();
    });
  });

  it("a program of another user is refused", async () => {
    if (process.geteuid?.() !== 0)
      return assert.ok(process.geteuid?.() !== 0, "only root can be another user");
    await withAgent(async ({ test }) => {
      // Root opens the door that the modes keep shut: the credentials alone decide.
      await run("chmod", ["711", test.folder]);
      await run("chmod", ["666", test.socket]);
      const nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "env"];
      const listed = await run("setpriv", [...nobody, `SSH_AUTH_SOCK=${test.socket}`, "ssh-add", "-l"]);
      assert.notEqual(listed.code, 0);
      assert.doesNotMatch(listed.stdout, /free/);
      assert.ok(test.log.some(({ message }) => message.includes("another user")));
      assert.match((await test.run("ssh-add", ["-l"])).stdout, /free/);
    });
  });
});

describe("signatures for a hostile client", () => {
  it("a key for a host signs only after a bind to that host, and only for that session", async () => {
    await withAgent(async ({ test, limited, web, other }) => {
      const sessionId = randomBytes(32);
      const askAs = async (binds: AgentRequest[], request: AgentRequest): Promise<string | undefined> => {
        using client = await RawClient.connect(test.socket);
        for (const each of binds) await client.ask(each);
        return (await client.ask(request))?.type;
      };
      const good = signRequest(limited, loginData(limited, sessionId, web.blob));
      assert.equal(await askAs([bind(web, sessionId, false)], good), "signature");
      const refused: [name: string, binds: AgentRequest[], AgentRequest][] = [
        ["no bind", [], good],
        ["a bind of another host", [bind(other, sessionId, false)], good],
        ["a bind for forwarding", [bind(web, sessionId, true)], good],
        ["a bind of another session", [bind(web, randomBytes(32), false)], good],
        [
          "a bind signed by another key",
          [
            {
              type: "extension",
              name: SESSION_BIND,
              content: encodeSessionBind({
                hostKey: web.blob,
                sessionId,
                signature: sign(other.pair, sessionId),
                isForwarding: false,
              }),
            },
          ],
          good,
        ],
        [
          "a sound bind after a bad one",
          [{ type: "extension", name: SESSION_BIND, content: Buffer.alloc(9) }, bind(web, sessionId, false)],
          good,
        ],
        [
          "a second login on the connection",
          [bind(web, randomBytes(32), false), bind(web, sessionId, false)],
          good,
        ],
        [
          "another host key in the request",
          [bind(web, sessionId, false)],
          signRequest(limited, loginData(limited, sessionId, other.blob)),
        ],
        [
          "through a host, without the host key in the request",
          [bind(other, randomBytes(32), true), bind(web, sessionId, false)],
          signRequest(limited, loginData(limited, sessionId)),
        ],
        ["other data", [bind(web, sessionId, false)], signRequest(limited, randomBytes(64))],
        [
          "a login request with a trailing byte",
          [bind(web, sessionId, false)],
          signRequest(limited, Buffer.concat([loginData(limited, sessionId, web.blob), Buffer.of(0)])),
        ],
        [
          "an SSH signature without a namespace of the key",
          [bind(web, sessionId, false)],
          signRequest(
            limited,
            encodeSshsigData({ namespace: "git", hash: "sha512", digest: Buffer.alloc(64) }),
          ),
        ],
      ];
      for (const [name, binds, request] of refused)
        assert.equal(await askAs(binds, request), "failure", name);
    });
  });

  it("a free key signs no login for another session than the bound one", async () => {
    await withAgent(async ({ test, free, limited, web }) => {
      const sessionId = randomBytes(32);
      using client = await RawClient.connect(test.socket);
      await client.ask(bind(web, sessionId, false));
      assert.deepEqual(await client.ask(signRequest(free, loginData(free, randomBytes(32)))), FAILURE);
      assert.deepEqual(await client.ask(signRequest(free, loginData(limited, sessionId))), FAILURE);
      const data = loginData(free, sessionId);
      const answer = await client.ask(signRequest(free, data));
      assert.ok(answer?.type === "signature" && verify(free.pair.publicKey, answer.signature, data));
    });
  });

  it("RSA signs with SHA-256 and SHA-512, and never with SHA-1", async () => {
    await using keys = await keysFolder();
    const rsa = await makeKey(keys.path, "rsa", ["-t", "rsa", "-b", "2048"]);
    await using test = await startSshAgent({ sources: [new MemorySource("a", [identityOf(rsa, "rsa")])] });
    using client = await RawClient.connect(test.socket);
    for (const [flags, algorithm] of [
      [2, "rsa-sha2-256"],
      [4, "rsa-sha2-512"],
    ] as const) {
      const answer = await client.ask(signRequest(rsa, Buffer.from("data"), flags));
      assert.ok(answer?.type === "signature" && answer.signature.includes(algorithm));
      assert.ok(verify(rsa.pair.publicKey, answer.signature, Buffer.from("data")));
    }
    for (const flags of [0, 1, 0xff00]) {
      assert.deepEqual(await client.ask(signRequest(rsa, Buffer.from("data"), flags)), FAILURE);
    }
  });

  it("a key that is not listed signs nothing", async () => {
    await withAgent(async ({ test, free, other, source }) => {
      using client = await RawClient.connect(test.socket);
      assert.deepEqual(await client.ask(signRequest(other, Buffer.from("data"))), FAILURE);
      assert.equal((await client.ask(signRequest(free, Buffer.from("data"))))?.type, "signature");
      source.keys = [identityOf(free, "free", {}, { certificateExpiresAt: Date.now() - 1 })];
      source.change();
      assert.deepEqual(await client.ask({ type: "identities" }), { type: "identities", identities: [] });
      assert.deepEqual(await client.ask(signRequest(free, Buffer.from("data"))), FAILURE);
      const { refusals } = test.agent.status();
      assert.equal(refusals[0]?.reason, "the key is not offered to this connection");
    });
  });

  it("a process that has ended gets no signature through a child with its connection", async () => {
    await withAgent(async ({ test, free }) => {
      // The parent connects and ends; its child asks.
      const script = `
import os, socket, sys, time
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(bytes([0, 0, 0, 1, 11]))
connection.recv(65536)
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        time.sleep(0.01)
    connection.sendall(bytes.fromhex(sys.argv[2]))
    print(connection.recv(65536)[4], flush=True)
`;
      const message = encodeAgentFrame(encodeAgentRequest(signRequest(free, Buffer.from("data"))));
      const { stdout } = await run("python3", ["-c", script, test.socket, message.toString("hex")]);
      assert.equal(stdout, "5\n");
      assert.equal(test.agent.status().refusals[0]?.reason, "the program that asked has ended");
    });
  });

  const assertRefused = async (state: SshIdentity["state"], reason: string): Promise<void> => {
    await withAgent(async ({ test, free, source }) => {
      const { promise: given, resolve: giveUp } = Promise.withResolvers<void>();
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const hanging = async (_data: Buffer, _hash: unknown, signal: AbortSignal): Promise<Buffer> => {
        begin();
        await once(signal, "abort");
        giveUp();
        throw signal.reason;
      };
      source.keys = [identityOf(free, "free", {}, { sign: hanging, state })];
      source.change();
      const client = await RawClient.connect(test.socket);
      client.sendMessage(
        Buffer.concat([
          Buffer.of(13, 0, 0, 0, free.blob.length),
          free.blob,
          Buffer.of(0, 0, 0, 1, 65, 0, 0, 0, 0),
        ]),
      );
      await begun;
      client[Symbol.dispose]();
      await given;
      await until(() => test.agent.status().refusals.length === 1);
      assert.equal(test.agent.status().refusals[0]?.reason, reason);
    });
  };

  it("the signature of a client that has left is given up", async () => {
    await assertRefused("ready", "it was not possible in time");
  });

  it("a signature that waited for a passphrase says how to unlock the key", async () => {
    await assertRefused(
      "needs-passphrase",
      "its passphrase was not typed in time; 'agent keys unlock' opens it",
    );
  });
});
