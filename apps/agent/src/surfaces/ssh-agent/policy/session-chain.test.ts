import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { encodePublicKey, encodeSessionBind, publicKeyOf, sign } from "@devplat/ssh-protocol";
import { MAX_BOUND_SESSIONS, UNBOUND, bindSession, type SessionChain } from "./session-chain.ts";

const KEYS = [generateKeyPairSync("ed25519"), generateKeyPairSync("ed25519")] as const;

const bindOf = (
  host: 0 | 1,
  session: string,
  isForwarding: boolean,
  signer: { privateKey: KeyObject; publicKey: KeyObject } = KEYS[host],
): Buffer => {
  const sessionId = Buffer.from(session);
  const pair = { publicKey: publicKeyOf(signer.publicKey), privateKey: signer.privateKey };
  return encodeSessionBind({
    hostKey: encodePublicKey(publicKeyOf(KEYS[host].publicKey)),
    sessionId,
    signature: sign(pair, sessionId),
    isForwarding,
  });
};
const bindAll = (binds: readonly Buffer[]): { chain: SessionChain; faults: (string | undefined)[] } => {
  let chain = UNBOUND;
  const faults = binds.map((bind) => {
    const result = bindSession(chain, bind);
    chain = result.chain;
    return result.fault;
  });
  return { chain, faults };
};

describe("bindSession", () => {
  it("takes hops, then one login", () => {
    const { chain, faults } = bindAll([bindOf(0, "first", true), bindOf(1, "second", false)]);
    assert.deepEqual(faults, [undefined, undefined]);
    assert.deepEqual(
      chain.sessions.map(({ isForwarding }) => isForwarding),
      [true, false],
    );
    assert.equal(chain.isBroken, false);
  });

  it("counts a repeated bind once", () => {
    const { chain, faults } = bindAll([bindOf(0, "first", true), bindOf(0, "first", true)]);
    assert.deepEqual(faults, [undefined, undefined]);
    assert.equal(chain.sessions.length, 1);
  });

  const refused: [name: string, binds: Buffer[]][] = [
    ["a signature of another key", [bindOf(0, "first", false, KEYS[1])]],
    ["a bind after a login", [bindOf(0, "first", false), bindOf(1, "second", false)]],
    ["a repeated login", [bindOf(0, "first", false), bindOf(0, "first", false)]],
    ["a session under another host key", [bindOf(0, "first", true), bindOf(1, "first", true)]],
    ["no content", [Buffer.alloc(0)]],
    ["trailing bytes", [Buffer.concat([bindOf(0, "first", true), Buffer.of(1)])]],
    [
      "too many sessions",
      Array.from({ length: MAX_BOUND_SESSIONS + 1 }, (_, at) => bindOf(0, `session ${at}`, true)),
    ],
  ];
  for (const [name, binds] of refused) {
    it(`refuses ${name}, and the chain is broken after it`, () => {
      const { chain, faults } = bindAll(binds);
      assert.notEqual(faults.at(-1), undefined);
      assert.ok(faults.slice(0, -1).every((fault) => fault === undefined));
      assert.equal(chain.isBroken, true);
      // A later sound one does not repair it.
      assert.equal(bindSession(chain, bindOf(1, "later", true)).chain.isBroken, true);
    });
  }

  it("never takes a changed bind for a sound one", () => {
    const sound = bindOf(0, "a session identifier", false);
    // All but the last byte, which says whether the connection is forwarded and is not signed.
    fc.assert(
      fc.property(fc.nat(sound.length - 2), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const bytes = Buffer.from(sound);
        bytes[at] = (bytes[at] ?? 0) ^ change;
        assert.notEqual(bindSession(UNBOUND, bytes).fault, undefined);
      }),
    );
  });

  it("refuses any other bytes with a reason", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        assert.equal(typeof bindSession(UNBOUND, Buffer.from(bytes)).fault, "string");
      }),
    );
  });
});
