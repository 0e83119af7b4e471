import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { assertSurvivesDamage, assertThrowsCode } from "../test/malformed.test-kit.ts";
import { KEY_TYPES, keyFolder } from "../test/openssh.test-kit.ts";
import {
  WireWriter,
  decodePublicKey,
  decodePublicKeyLine,
  encodePublicKey,
  encodePublicKeyLine,
  fingerprint,
  keyObjectOf,
  keyTypeOf,
  publicKeyOf,
  type SshErrorCode,
} from "./index.ts";

const number = (bits: number): Buffer => Buffer.concat([Buffer.of(0xc1), Buffer.alloc(bits / 8 - 1, 7)]);
const rsa = (modulus: Buffer): Buffer =>
  new WireWriter()
    .string("ssh-rsa")
    .mpint(Buffer.of(1, 0, 1))
    .mpint(modulus)
    .bytes();

describe("public keys", () => {
  for (const [type, args] of Object.entries(KEY_TYPES)) {
    it(`${type}: ssh-keygen and this package read each other's keys`, async () => {
      await using keys = await keyFolder();
      const { publicText } = await keys.makeKey("id", args);
      const line = decodePublicKeyLine(publicText);
      assert.equal(line.type, type);
      assert.equal(line.comment, "id key");
      assert.equal(encodePublicKeyLine(line.blob, line.comment), publicText.trimEnd());
      assert.ok((await keys.keygen(["-l", "-f", "id.pub"])).includes(` ${fingerprint(line.blob)} `));

      const key = decodePublicKey(line.blob);
      assert.equal(key.type, type);
      assert.deepEqual(encodePublicKey(key), line.blob);
      const object = keyObjectOf(key);
      assert.deepEqual(publicKeyOf(object), key);
      if (type === "ssh-ed25519") return;
      // ssh-keygen reads the other types from SubjectPublicKeyInfo, without this package.
      await keys.write("id.spki", object.export({ type: "spki", format: "pem" }));
      const read = await keys.keygen(["-i", "-m", "PKCS8", "-f", "id.spki"]);
      assert.equal(read.trimEnd(), encodePublicKeyLine(line.blob));
    });
  }

  it("makes keys of node:crypto into keys that ssh-keygen reads", async () => {
    await using keys = await keyFolder();
    const made = [
      generateKeyPairSync("ed25519").privateKey,
      generateKeyPairSync("ec", { namedCurve: "P-384" }).publicKey,
      generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey,
    ];
    const blobs = made.map((key) => encodePublicKey(publicKeyOf(key)));
    const shown = await keys.keygen(
      ["-l", "-f", "-"],
      `${blobs.map((blob) => encodePublicKeyLine(blob)).join("\n")}\n`,
    );
    assert.deepEqual(
      shown
        .trimEnd()
        .split("\n")
        .map((line) => line.split(" ")[1]),
      blobs.map((blob) => fingerprint(blob)),
    );
  });

  it("shows keys of FIDO devices and does not use them", () => {
    const { point } = decodePublicKey(
      encodePublicKey(publicKeyOf(generateKeyPairSync("ed25519").publicKey)),
    ) as { point: Buffer };
    const ec = publicKeyOf(generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey) as { point: Buffer };
    for (const key of [
      { type: "sk-ssh-ed25519@openssh.com", point, application: "ssh:" },
      { type: "sk-ecdsa-sha2-nistp256@openssh.com", point: ec.point, application: "ssh:work" },
    ] as const) {
      assert.deepEqual(decodePublicKey(encodePublicKey(key)), key);
      assertThrowsCode(() => keyObjectOf(key), "unsupported");
    }
  });

  it("refuses keys of other kinds", () => {
    assertThrowsCode(() => publicKeyOf(generateKeyPairSync("ed448").publicKey), "unsupported");
    assertThrowsCode(
      () => publicKeyOf(generateKeyPairSync("ec", { namedCurve: "secp256k1" }).publicKey),
      "unsupported",
    );
    assertThrowsCode(
      () => publicKeyOf(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey),
      "weak_key",
    );
  });

  it("refuses malformed blobs with the code that names the fault", () => {
    const ed25519 = new WireWriter().string("ssh-ed25519");
    const table: readonly [string, Buffer, SshErrorCode][] = [
      ["empty", Buffer.alloc(0), "truncated"],
      ["no name", new WireWriter().string("").bytes(), "bad_value"],
      ["DSA", new WireWriter().string("ssh-dss").mpint(number(1024)).bytes(), "unsupported"],
      ["certificate", new WireWriter().string("ssh-ed25519-cert-v01@openssh.com").bytes(), "unsupported"],
      ["short key", new WireWriter().string("ssh-ed25519").string(Buffer.alloc(31)).bytes(), "bad_value"],
      ["length of 4 GiB", ed25519.uint32(0xffffffff).bytes(), "truncated"],
      [
        "trailing byte",
        new WireWriter().string("ssh-ed25519").string(Buffer.alloc(32)).byte(0).bytes(),
        "trailing_data",
      ],
      [
        "other curve",
        new WireWriter().string("ecdsa-sha2-nistp256").string("nistp384").string(Buffer.alloc(97, 4)).bytes(),
        "bad_value",
      ],
      [
        "compressed point",
        new WireWriter().string("ecdsa-sha2-nistp256").string("nistp256").string(Buffer.alloc(33, 2)).bytes(),
        "bad_value",
      ],
      ["RSA of 1024 bits", rsa(number(1024)), "weak_key"],
      ["RSA of 2047 bits", rsa(Buffer.concat([Buffer.of(0x7f), number(2048).subarray(1)])), "weak_key"],
      ["RSA without modulus", rsa(Buffer.alloc(0)), "weak_key"],
      ["RSA of 16,400 bits", rsa(number(16_400)), "too_long"],
    ];
    for (const [name, blob, code] of table) assertThrowsCode(() => decodePublicKey(blob), code, name);
    assert.equal(decodePublicKey(rsa(number(16_384))).type, "ssh-rsa");
  });

  it("refuses a point that is not on its curve when the key is used", () => {
    const blob = new WireWriter()
      .string("ecdsa-sha2-nistp256")
      .string("nistp256")
      .string(Buffer.alloc(65, 4))
      .bytes();
    assertThrowsCode(() => keyObjectOf(decodePublicKey(blob)), "bad_key");
  });

  it("ends with a key or the package's error for damaged blobs", () => {
    const keys = [
      generateKeyPairSync("ed25519"),
      generateKeyPairSync("ec", { namedCurve: "P-521" }),
      generateKeyPairSync("rsa", { modulusLength: 2048 }),
    ];
    for (const { publicKey } of keys) {
      assertSurvivesDamage(encodePublicKey(publicKeyOf(publicKey)), (bytes) =>
        keyObjectOf(decodePublicKey(bytes)),
      );
    }
  });
});

describe("public key lines", () => {
  const blob = new WireWriter().string("ssh-ed25519").string(Buffer.alloc(32, 5)).bytes();

  it("reads lines with odd white space, and writes one line", () => {
    const line = `  ssh-ed25519\t${blob.toString("base64")}   a  b \r\n`;
    assert.deepEqual(decodePublicKeyLine(line), { type: "ssh-ed25519", blob, comment: "a  b" });
    assert.ok(!encodePublicKeyLine(blob, "a\nssh-rsa b").includes("\n"));
    assert.equal(keyTypeOf(blob), "ssh-ed25519");
  });

  it("refuses malformed lines", () => {
    const base64 = blob.toString("base64");
    const table: readonly [string, SshErrorCode][] = [
      ["", "bad_text"],
      ["ssh-ed25519", "bad_text"],
      [`ssh-ed25519 ${base64.slice(1)}`, "bad_text"],
      [`ssh-ed25519 ${base64.slice(0, -4)}!!!!`, "bad_text"],
      [`ssh-rsa ${base64}`, "bad_value"],
      [`no-pty ssh-ed25519 ${base64}`, "bad_text"],
      [`ssh-ed25519 ${base64} a\nssh-ed25519 ${base64}`, "bad_text"],
      ["ssh-ed25519 AAAA", "truncated"],
    ];
    for (const [line, code] of table) assertThrowsCode(() => decodePublicKeyLine(line), code, line);
  });
});
