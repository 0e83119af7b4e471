import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import fc from "fast-check";
import { assertSurvivesDamage, assertThrowsCode } from "../../test/malformed.test-kit.ts";
import {
  AgentFrameReader,
  MAX_AGENT_MESSAGE_BYTES,
  WireWriter,
  decodeAgentAnswer,
  decodeAgentRequest,
  decodeSessionBind,
  encodeAgentAnswer,
  encodeAgentFrame,
  encodeAgentRequest,
  encodePublicKey,
  encodeSessionBind,
  publicKeyOf,
  queryAnswer,
  requestedRsaAlgorithm,
  sign,
  verifySessionBind,
  type AddedKey,
  type AgentAnswer,
  type AgentRequest,
  type HopEnd,
  type KeyConstraint,
  type SshErrorCode,
} from "../index.ts";

const bytes = fc.uint8Array({ maxLength: 60 }).map((value) => Buffer.from(value));
const text = fc.string({ maxLength: 20 });
const name = fc.stringMatching(/^[a-z0-9@.-]{1,20}$/);
const record = <T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true });

const keyOf = (privateKey: AddedKey["privateKey"]): AddedKey => ({
  privateKey,
  publicKey: publicKeyOf(privateKey),
  certificate: undefined,
  comment: "a comment",
});
const KEYS = [
  keyOf(generateKeyPairSync("ed25519").privateKey),
  keyOf(generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey),
  keyOf(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey),
];
const [ed25519] = KEYS as [AddedKey];

const hopKeys = fc.array(record({ blob: bytes, isAuthority: fc.boolean() }), { minLength: 1, maxLength: 3 });
const host = fc.stringMatching(/^[a-z.*]{1,12}$/);
const to: fc.Arbitrary<HopEnd> = record({ user: text, host, keys: hopKeys });
const from: fc.Arbitrary<HopEnd> = fc.oneof(
  record({ user: fc.constant(""), host, keys: hopKeys }),
  fc.constant({ user: "", host: "", keys: [] }),
);
const constraint: fc.Arbitrary<KeyConstraint> = fc.oneof(
  record({ type: fc.constant("lifetime" as const), seconds: fc.nat(2 ** 32 - 1) }),
  fc.constant({ type: "confirm" as const }),
  record({
    type: fc.constant("restrict-destination" as const),
    hops: fc.array(record({ from, to }), { maxLength: 3 }),
  }),
);

const requests: fc.Arbitrary<AgentRequest> = fc.oneof(
  fc.constant({ type: "identities" as const }),
  fc.constant({ type: "remove-all" as const }),
  record({ type: fc.constant("sign" as const), key: bytes, data: bytes, flags: fc.nat(2 ** 32 - 1) }),
  record({ type: fc.constant("remove" as const), key: bytes }),
  record({ type: fc.constant("extension" as const), name, content: bytes }),
  record({
    type: fc.constant("unknown" as const),
    number: fc.constantFrom(0, 1, 20, 26, 200),
    content: bytes,
  }),
);
const answers: fc.Arbitrary<AgentAnswer> = fc.oneof(
  record({ type: fc.constantFrom("failure" as const, "success" as const, "extension-failure" as const) }),
  record({
    type: fc.constant("identities" as const),
    identities: fc.array(record({ blob: bytes, comment: text })),
  }),
  record({ type: fc.constant("signature" as const), signature: bytes }),
  record({ type: fc.constant("extension-response" as const), name, content: bytes }),
  record({ type: fc.constant("unknown" as const), number: fc.constantFrom(0, 2, 30, 102), content: bytes }),
);

describe("agent messages", () => {
  it("gives back every request that was encoded", () => {
    fc.assert(
      fc.property(requests, (request) => {
        assert.deepEqual(decodeAgentRequest(encodeAgentRequest(request)), request);
      }),
    );
    for (const type of ["lock", "unlock"] as const) {
      const decoded = decodeAgentRequest(
        encodeAgentRequest({ type, passphrase: new Secret(Buffer.from("horse £")) }),
      );
      assert.ok(decoded.type === type && decoded.passphrase.reveal().toString() === "horse £");
    }
  });

  it("gives back every answer that was encoded", () => {
    fc.assert(
      fc.property(answers, (answer) => {
        assert.deepEqual(decodeAgentAnswer(encodeAgentAnswer(answer)), answer);
      }),
    );
  });

  it("gives back added keys with their constraints", () => {
    fc.assert(
      fc.property(fc.array(constraint, { maxLength: 4 }), fc.constantFrom(...KEYS), (constraints, key) => {
        const decoded = decodeAgentRequest(encodeAgentRequest({ type: "add", key, constraints }));
        assert.equal(decoded.type, "add");
        if (decoded.type !== "add") return;
        assert.deepEqual(decoded.constraints, constraints);
        assert.deepEqual(decoded.key.publicKey, key.publicKey);
        assert.ok(decoded.key.privateKey.equals(key.privateKey));
        assert.equal(decoded.key.comment, key.comment);
      }),
    );
  });

  it("writes the numbers of the draft", () => {
    const numberOf = (request: AgentRequest): number | undefined => encodeAgentRequest(request)[0];
    const passphrase = new Secret(Buffer.from("a"));
    assert.deepEqual(
      [
        numberOf({ type: "identities" }),
        numberOf({ type: "sign", key: Buffer.alloc(0), data: Buffer.alloc(0), flags: 0 }),
        numberOf({ type: "add", key: ed25519, constraints: [] }),
        numberOf({ type: "remove", key: Buffer.alloc(0) }),
        numberOf({ type: "remove-all" }),
        numberOf({ type: "lock", passphrase }),
        numberOf({ type: "unlock", passphrase }),
        numberOf({ type: "add", key: ed25519, constraints: [{ type: "confirm" }] }),
        numberOf({ type: "extension", name: "query", content: Buffer.alloc(0) }),
      ],
      [11, 13, 17, 18, 19, 22, 23, 25, 27],
    );
    assert.equal(
      encodeAgentAnswer(queryAnswer(["a@b"])).toString("hex"),
      "1d00000005717565727900000003614062",
    );
  });

  it("chooses the hash of an RSA signature by the flags, and refuses SHA-1", () => {
    assert.equal(requestedRsaAlgorithm(2), "rsa-sha2-256");
    assert.equal(requestedRsaAlgorithm(4), "rsa-sha2-512");
    assert.equal(requestedRsaAlgorithm(6), "rsa-sha2-256");
    assertThrowsCode(() => requestedRsaAlgorithm(0), "refused_algorithm");
    assertThrowsCode(() => requestedRsaAlgorithm(1), "refused_algorithm");
  });

  it("refuses malformed requests with the code that names the fault", () => {
    const add = (rest: Buffer): Buffer => {
      const plain = encodeAgentRequest({ type: "add", key: ed25519, constraints: [] });
      plain.writeUInt8(25);
      return Buffer.concat([plain, rest]);
    };
    const pack = (...parts: readonly (string | Buffer)[]): Buffer =>
      parts.reduce<WireWriter>((writer, part) => writer.string(part), new WireWriter()).bytes();
    const restrict = (hop: Buffer): Buffer =>
      add(
        new WireWriter().byte(255).string("restrict-destination-v00@openssh.com").string(pack(hop)).bytes(),
      );
    const key = new WireWriter().string("blob").boolean(false).bytes();
    const nobody = pack("", "", "");
    const end = (user: string, hostName: string): Buffer => Buffer.concat([pack(user, hostName, ""), key]);
    const table: readonly [string, Buffer, SshErrorCode][] = [
      ["empty", Buffer.alloc(0), "truncated"],
      ["identities with content", Buffer.of(11, 0), "trailing_data"],
      ["sign without flags", new WireWriter().byte(13).string("key").string("data").bytes(), "truncated"],
      ["a length of 4 GiB", Buffer.of(13, 255, 255, 255, 255), "truncated"],
      ["an extension without a name", Buffer.of(27, 0, 0, 0, 0), "bad_value"],
      ["a constraint on a key without constraints", encodedWithNumber17(), "trailing_data"],
      ["a constraint of XMSS", add(Buffer.of(3, 0, 0, 0, 1)), "unsupported"],
      ["a constraint with another number", add(Buffer.of(77)), "unsupported"],
      ["a lifetime that is cut", add(Buffer.of(1, 0, 0)), "truncated"],
      ["another extension", add(new WireWriter().byte(255).string("a@b").bytes()), "unsupported"],
      ["a hop from a user", restrict(pack(end("alice", "a"), end("", "b"), "")), "bad_value"],
      ["a hop from a host without keys", restrict(pack(pack("", "a", ""), end("", "b"), "")), "bad_value"],
      ["a hop to nowhere", restrict(pack(nobody, nobody, "")), "bad_value"],
      ["a hop with an extension", restrict(pack(nobody, end("", "b"), "more")), "unsupported"],
      [
        "an end with an extension",
        restrict(pack(nobody, Buffer.concat([pack("", "b", "x"), key]), "")),
        "unsupported",
      ],
      [
        "a hop with a trailing byte",
        restrict(Buffer.concat([pack(nobody, end("", "b"), ""), Buffer.of(0)])),
        "trailing_data",
      ],
    ];
    for (const [title, message, code] of table)
      assertThrowsCode(() => decodeAgentRequest(message), code, title);
    assert.equal(decodeAgentRequest(restrict(pack(nobody, end("", "b"), ""))).type, "add");
    // The number of identities is a claim that costs nothing.
    assertThrowsCode(() => decodeAgentAnswer(Buffer.of(12, 255, 255, 255, 255)), "truncated");
  });

  it("ends with a value or the package's error for damaged messages", () => {
    for (const key of KEYS) {
      const constraints: KeyConstraint[] = [
        {
          type: "restrict-destination",
          hops: [
            {
              from: { user: "", host: "a", keys: [{ blob: Buffer.from("a"), isAuthority: true }] },
              to: { user: "alice", host: "b", keys: [{ blob: Buffer.from("b"), isAuthority: false }] },
            },
          ],
        },
      ];
      assertSurvivesDamage(encodeAgentRequest({ type: "add", key, constraints }), (message) =>
        decodeAgentRequest(message),
      );
    }
    const identities = [{ blob: Buffer.alloc(51), comment: "c" }];
    assertSurvivesDamage(encodeAgentAnswer({ type: "identities", identities }), (message) =>
      decodeAgentAnswer(message),
    );
  });
});

function encodedWithNumber17(): Buffer {
  const message = encodeAgentRequest({ type: "add", key: ed25519, constraints: [{ type: "confirm" }] });
  message.writeUInt8(17);
  return message;
}

describe("frames of agent messages", () => {
  it("finds the messages at any chunk borders", () => {
    const messages = fc.array(fc.uint8Array({ minLength: 1, maxLength: 200 }), { maxLength: 6 });
    fc.assert(
      fc.property(messages, fc.array(fc.nat(40), { maxLength: 12 }), (sent, sizes) => {
        let stream = Buffer.concat(sent.map((message) => encodeAgentFrame(message)));
        const reader = new AgentFrameReader();
        const found: Buffer[] = [];
        for (const size of [...sizes, stream.length]) {
          reader.push(stream.subarray(0, size));
          stream = stream.subarray(size);
          for (let next = reader.next(); next !== undefined; next = reader.next())
            found.push(Buffer.from(next));
        }
        assert.deepEqual(
          found,
          sent.map((message) => Buffer.from(message)),
        );
      }),
    );
  });

  it("refuses lengths of 0 and above 256 KiB before the message arrives", () => {
    const first = (length: number): Buffer | undefined => {
      const reader = new AgentFrameReader();
      reader.push(new WireWriter().uint32(length).bytes());
      return reader.next();
    };
    assertThrowsCode(() => first(0), "bad_value");
    assertThrowsCode(() => first(MAX_AGENT_MESSAGE_BYTES + 1), "too_long");
    assertThrowsCode(() => first(0xffffffff), "too_long");
    assert.equal(first(MAX_AGENT_MESSAGE_BYTES), undefined);
  });

  it("reads the longest message from single bytes", () => {
    const reader = new AgentFrameReader();
    const frame = encodeAgentFrame(Buffer.alloc(MAX_AGENT_MESSAGE_BYTES, 7));
    let found: Buffer | undefined;
    for (let at = 0; at < frame.length; at++) {
      reader.push(frame.subarray(at, at + 1));
      found = reader.next();
    }
    assert.equal(found?.length, MAX_AGENT_MESSAGE_BYTES);
  });
});

describe("session binds", () => {
  const sessionId = Buffer.alloc(32, 9);
  const made = (key: AddedKey) => ({
    hostKey: encodePublicKey(key.publicKey),
    sessionId,
    signature: sign(key, sessionId),
    isForwarding: true,
  });

  it("are sound if the host key signed the session identifier", () => {
    for (const key of KEYS) {
      const sent = made(key);
      const bind = decodeSessionBind(encodeSessionBind(sent));
      assert.deepEqual(bind, sent);
      assert.ok(verifySessionBind(bind));
      assert.ok(!verifySessionBind({ ...bind, sessionId: Buffer.alloc(32, 8) }));
      const other = encodePublicKey(publicKeyOf(generateKeyPairSync("ed25519").publicKey));
      assert.ok(!verifySessionBind({ ...bind, hostKey: other }));
    }
  });

  it("refuses malformed content", () => {
    const sound = encodeSessionBind(made(ed25519));
    assertThrowsCode(() => decodeSessionBind(sound.subarray(0, -1)), "truncated");
    assertThrowsCode(() => decodeSessionBind(Buffer.concat([sound, Buffer.of(0)])), "trailing_data");
    assertThrowsCode(() => verifySessionBind({ ...made(ed25519), hostKey: Buffer.alloc(0) }), "truncated");
    assertSurvivesDamage(sound, (content) => verifySessionBind(decodeSessionBind(content)));
  });
});
