import assert from "node:assert/strict";
import { generateKeyPairSync, sign as nodeSign, type KeyObject } from "node:crypto";
import { describe, it } from "node:test";
import { assertSurvivesDamage, assertThrowsCode } from "../test/malformed.test-kit.ts";
import {
  WireWriter,
  decodeSignature,
  encodeSignature,
  publicKeyOf,
  sign,
  verify,
  type KeyPair,
  type SshErrorCode,
} from "./index.ts";

const pairOf = (privateKey: KeyObject): KeyPair => ({ privateKey, publicKey: publicKeyOf(privateKey) });
const PAIRS = [
  pairOf(generateKeyPairSync("ed25519").privateKey),
  pairOf(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey),
  pairOf(generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey),
  pairOf(generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey),
  pairOf(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey),
];
const [ed25519, p256, , , rsa] = PAIRS as [KeyPair, KeyPair, KeyPair, KeyPair, KeyPair];
const DATA = Buffer.from("data to sign");

describe("signatures", () => {
  for (const pair of PAIRS) {
    it(`${pair.publicKey.type}: verifies its own signature of this data only`, () => {
      // Numbers of ECDSA with leading zeros come about once in 128 signatures.
      for (let count = 0; count < (pair === rsa ? 4 : 300); count++) {
        const signature = sign(pair, DATA);
        assert.ok(verify(pair.publicKey, signature, DATA));
        if (count === 0) {
          assert.ok(!verify(pair.publicKey, signature, Buffer.from("other data")));
          for (const other of PAIRS.filter((each) => each !== pair)) {
            assert.ok(!verify(other.publicKey, signature, DATA));
          }
          assert.deepEqual(encodeSignature(decodeSignature(signature)), signature);
        }
      }
    });
  }

  it("signs with RSA and the hash that was asked for", () => {
    for (const algorithm of ["rsa-sha2-256", "rsa-sha2-512"] as const) {
      const signature = sign(rsa, DATA, algorithm);
      assert.equal(decodeSignature(signature).algorithm, algorithm);
      assert.ok(verify(rsa.publicKey, signature, DATA));
      const { value } = decodeSignature(signature);
      const other = algorithm === "rsa-sha2-256" ? "rsa-sha2-512" : "rsa-sha2-256";
      assert.ok(!verify(rsa.publicKey, encodeSignature({ algorithm: other, value }), DATA));
    }
  });

  it("accepts an RSA signature without its leading zeros", () => {
    let count = 0;
    for (;;) {
      const { algorithm, value } = decodeSignature(sign(rsa, Buffer.from(String(count++)), "rsa-sha2-256"));
      if (value[0] !== 0) continue;
      const short = encodeSignature({ algorithm, value: value.subarray(1) });
      assert.ok(verify(rsa.publicKey, short, Buffer.from(String(count - 1))));
      break;
    }
  });

  it("refuses RSA with SHA-1", () => {
    const value = nodeSign("sha1", DATA, rsa.privateKey);
    const signature = new WireWriter().string("ssh-rsa").string(value).bytes();
    assertThrowsCode(() => verify(rsa.publicKey, signature, DATA), "refused_algorithm");
  });

  it("refuses malformed signatures with the code that names the fault", () => {
    const blob = (name: string, value: Uint8Array | string): Buffer =>
      new WireWriter().string(name).string(value).bytes();
    const numbers = (r: Buffer, s: Buffer): Buffer => new WireWriter().mpint(r).mpint(s).bytes();
    const table: readonly [string, KeyPair, Buffer, SshErrorCode][] = [
      ["empty", ed25519, Buffer.alloc(0), "truncated"],
      ["DSA", ed25519, blob("ssh-dss", ""), "unsupported"],
      ["security key", ed25519, blob("sk-ssh-ed25519@openssh.com", ""), "unsupported"],
      ["trailing byte", ed25519, Buffer.concat([sign(ed25519, DATA), Buffer.of(0)]), "trailing_data"],
      ["ECDSA without numbers", p256, blob("ecdsa-sha2-nistp256", ""), "truncated"],
      [
        "ECDSA with three numbers",
        p256,
        blob("ecdsa-sha2-nistp256", Buffer.concat([numbers(Buffer.of(1), Buffer.of(1)), Buffer.of(1)])),
        "trailing_data",
      ],
      [
        "negative",
        p256,
        blob("ecdsa-sha2-nistp256", new WireWriter().string(Buffer.of(0x80)).bytes()),
        "bad_value",
      ],
    ];
    for (const [name, { publicKey }, signature, code] of table) {
      assertThrowsCode(() => verify(publicKey, signature, DATA), code, name);
    }
    const wrong: readonly [KeyPair, Buffer][] = [
      [ed25519, blob("ssh-ed25519", "")],
      [ed25519, blob("ssh-ed25519", Buffer.alloc(64))],
      [ed25519, blob("ssh-ed25519", Buffer.alloc(65))],
      [p256, blob("ecdsa-sha2-nistp256", numbers(Buffer.alloc(0), Buffer.alloc(0)))],
      [p256, blob("ecdsa-sha2-nistp256", numbers(Buffer.alloc(33, 1), Buffer.of(1)))],
      [rsa, blob("rsa-sha2-512", "")],
      [rsa, blob("rsa-sha2-512", Buffer.alloc(257, 1))],
    ];
    for (const [{ publicKey }, signature] of wrong) assert.equal(verify(publicKey, signature, DATA), false);
  });

  it("a signature with a changed value is invalid or fails with the package's error", () => {
    for (const pair of PAIRS) {
      const signature = sign(pair, DATA);
      assertSurvivesDamage(signature, (bytes) => {
        if (!bytes.equals(signature)) assert.equal(verify(pair.publicKey, bytes, DATA), false);
      });
    }
  });
});
