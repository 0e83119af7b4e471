import assert from "node:assert/strict";
import { generateKeyPairSync, sign, verify, type KeyObject } from "node:crypto";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { assertOwnError, assertSurvivesDamage, assertThrowsCode } from "../test/malformed.test-kit.ts";
import { KEY_TYPES, keyFolder } from "../test/openssh.test-kit.ts";
import {
  WireWriter,
  decodePublicKey,
  decodePublicKeyLine,
  encodeOpenSshKey,
  encodePublicKey,
  encodePublicKeyLine,
  keyObjectOf,
  publicKeyOf,
  readPrivateKey,
  type PrivateKeyReading,
  type SshErrorCode,
} from "./index.ts";

/** Ciphers that ssh-keygen writes with `-Z`. */
const CIPHERS = [
  "aes128-cbc",
  "aes192-cbc",
  "aes256-cbc",
  "aes128-ctr",
  "aes192-ctr",
  "aes256-ctr",
  "aes128-gcm@openssh.com",
  "aes256-gcm@openssh.com",
  "chacha20-poly1305@openssh.com",
];
const PASSPHRASE = "correct horse £";

/** Asserts that a key is open, has this public half, and signs what the public half verifies. */
function assertOpen(reading: PrivateKeyReading, blob: Buffer, comment: string): void {
  assert.equal(reading.state, "open");
  if (reading.state !== "open") return;
  assert.deepEqual(encodePublicKey(reading.publicKey), blob);
  assert.equal(reading.comment, comment);
  const hash = reading.publicKey.type === "ssh-ed25519" ? null : "sha256";
  const signature = sign(hash, Buffer.from("data"), reading.privateKey);
  assert.ok(verify(hash, Buffer.from("data"), keyObjectOf(reading.publicKey), signature));
}

const derOf = (pem: string): Buffer => Buffer.from(pem.replaceAll(/-----.*-----|\s/g, ""), "base64");
const pemOf = (bytes: Buffer): string =>
  `-----BEGIN OPENSSH PRIVATE KEY-----\n${bytes.toString("base64")}\n-----END OPENSSH PRIVATE KEY-----\n`;

describe("private keys", () => {
  for (const [type, args] of Object.entries(KEY_TYPES)) {
    it(`${type}: reads an ssh-keygen file and PKCS#8, and ssh-keygen reads its output`, async () => {
      await using keys = await keyFolder();
      const { privateText, publicText } = await keys.makeKey("id", args);
      const { blob } = decodePublicKeyLine(publicText);
      const reading = readPrivateKey(privateText);
      assertOpen(reading, blob, "id key");
      if (reading.state !== "open") return;

      const pkcs8 = reading.privateKey.export({ type: "pkcs8", format: "pem" });
      assertOpen(readPrivateKey(pkcs8), blob, "");
      if (type !== "ssh-ed25519") {
        await keys.keygen(["-p", "-N", "", "-P", "", "-m", "PEM", "-f", "id"]);
        const old = await keys.read("id");
        assert.match(old, /BEGIN (?:RSA|EC) PRIVATE KEY/);
        assertOpen(readPrivateKey(old), blob, "");
      }

      const written = encodeOpenSshKey(reading.privateKey, { comment: "a comment", passphrase: undefined });
      await keys.write("written", written);
      assert.equal(
        (await keys.keygen(["-y", "-P", "", "-f", "written"])).trimEnd(),
        encodePublicKeyLine(blob, "a comment"),
      );
    });
  }

  for (const cipher of CIPHERS) {
    it(`opens what ssh-keygen encrypts with ${cipher}, with the right passphrase only`, async () => {
      await using keys = await keyFolder();
      const { privateText, publicText } = await keys.makeKey("id", [
        "-t",
        "ed25519",
        "-Z",
        cipher,
        "-a",
        "1",
        "-N",
        PASSPHRASE,
      ]);
      const { blob } = decodePublicKeyLine(publicText);
      assert.deepEqual(readPrivateKey(privateText), {
        state: "needs-passphrase",
        publicKey: decodePublicKey(blob),
      });
      assertOpen(readPrivateKey(privateText, new Secret(PASSPHRASE)), blob, "id key");
      for (const wrong of ["correct horse", ""]) {
        assertThrowsCode(() => readPrivateKey(privateText, new Secret(wrong)), "wrong_passphrase");
      }
    });
  }

  it("writes an encrypted file that ssh-keygen opens with its passphrase only", async () => {
    await using keys = await keyFolder();
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    await keys.write(
      "id",
      encodeOpenSshKey(privateKey, { comment: "c", passphrase: new Secret(PASSPHRASE) }),
    );
    const line = encodePublicKeyLine(encodePublicKey(publicKeyOf(publicKey)), "c");
    assert.equal((await keys.keygen(["-y", "-P", PASSPHRASE, "-f", "id"])).trimEnd(), line);
    await assert.rejects(keys.keygen(["-y", "-P", "wrong", "-f", "id"]));
  });

  it("opens encrypted PKCS#8 and PEM, whose public half is not known before", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const blob = encodePublicKey(publicKeyOf(publicKey));
    for (const type of ["pkcs8", "sec1"] as const) {
      const text = privateKey.export({ type, format: "pem", cipher: "aes-256-cbc", passphrase: PASSPHRASE });
      assert.deepEqual(readPrivateKey(text), { state: "needs-passphrase", publicKey: undefined });
      assertThrowsCode(() => readPrivateKey(text, new Secret("wrong")), "wrong_passphrase");
      assertOpen(readPrivateKey(text, new Secret(PASSPHRASE)), blob, "");
    }
  });

  it("refuses other texts with the code that names the fault", () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const sound = encodeOpenSshKey(privateKey, { comment: "", passphrase: undefined });
    const pem = (key: { export(options: object): string | Buffer }, type: string): string =>
      key.export({ type, format: "pem" }).toString();
    const envelope = (cipher: string, kdf: string, rounds: number, count = 1): string =>
      pemOf(
        new WireWriter()
          .raw(Buffer.from("openssh-key-v1\0"))
          .string(cipher)
          .string(kdf)
          .string(new WireWriter().string("salt").uint32(rounds).bytes())
          .uint32(count)
          .string(encodePublicKey(publicKeyOf(publicKey)))
          .string(Buffer.alloc(16))
          .bytes(),
      );
    const changed = (change: (bytes: Buffer) => void): string => {
      const bytes = derOf(sound);
      change(bytes);
      return pemOf(bytes);
    };
    const table: readonly [string, string, SshErrorCode][] = [
      ["empty", "", "bad_text"],
      ["a public key", pem(publicKey, "spki"), "unsupported"],
      ["PKCS#8 of another kind", pem(generateKeyPairSync("x25519").privateKey, "pkcs8"), "unsupported"],
      [
        "RSA of 1024 bits",
        pem(generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey, "pkcs8"),
        "weak_key",
      ],
      ["PKCS#8 that is cut", pem(privateKey, "pkcs8").replace(/.{8}\n-----END/, "\n-----END"), "bad_key"],
      ["no END line", sound.replace(/-----END.*/, ""), "bad_text"],
      ["two keys in a file", envelope("aes256-ctr", "bcrypt", 1, 2), "unsupported"],
      ["another cipher", envelope("3des-cbc", "bcrypt", 1), "unsupported"],
      ["another derivation", envelope("aes256-ctr", "argon2", 1), "unsupported"],
      ["a cipher without derivation", envelope("aes256-ctr", "none", 1), "unsupported"],
      ["options without a cipher", envelope("none", "none", 1), "trailing_data"],
      ["no rounds", envelope("aes256-ctr", "bcrypt", 0), "too_long"],
      ["4 thousand million rounds", envelope("aes256-ctr", "bcrypt", 0xffffffff), "too_long"],
      ["no tag", envelope("aes256-gcm@openssh.com", "bcrypt", 1), "truncated"],
      ["another magic", changed((bytes) => bytes.write("openssh-key-v2")), "bad_value"],
      ["wrong padding", changed((bytes) => bytes.writeUInt8(9, bytes.length - 1)), "bad_value"],
      ["other private half", changed((bytes) => bytes.fill(1, 170, 175)), "bad_key"],
      ["too long", "A".repeat(65 * 1024), "too_long"],
    ];
    for (const [name, text, code] of table) assertThrowsCode(() => readPrivateKey(text), code, name);
  });

  it("refuses RSA and ECDSA numbers that do not belong together", () => {
    const makers = [
      () => generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
      () => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
    ];
    const numberOf = (key: KeyObject): Buffer =>
      Buffer.from(key.export({ format: "jwk" }).d ?? "", "base64url");
    for (const make of makers) {
      let key = make();
      // The file has no leading zeros.
      while (numberOf(key)[0] === 0) key = make();
      const ourNumber = numberOf(key);
      let theirNumber = numberOf(make());
      // A longer number would overwrite the length of the next field.
      while (theirNumber.length !== ourNumber.length) theirNumber = numberOf(make());
      const ours = derOf(encodeOpenSshKey(key, { comment: "", passphrase: undefined }));
      const at = ours.indexOf(ourNumber);
      assert.ok(at > 0);
      ours.set(theirNumber.subarray(1), at + 1);
      assertThrowsCode(() => readPrivateKey(pemOf(ours)), "bad_key");
    }
  });

  it("ends with a key or the package's error for damaged files", () => {
    for (const key of [
      generateKeyPairSync("ed25519").privateKey,
      generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
      generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
    ]) {
      const text = encodeOpenSshKey(key, { comment: "c", passphrase: undefined });
      assertSurvivesDamage(derOf(text), (bytes) => readPrivateKey(pemOf(bytes)));
      assertSurvivesDamage(Buffer.from(text), (bytes) => readPrivateKey(bytes.toString("latin1")));
      const pkcs8 = key.export({ type: "pkcs8", format: "pem" });
      assertSurvivesDamage(Buffer.from(pkcs8), (bytes) => readPrivateKey(bytes.toString("latin1")));
    }
  });

  it("never shows a part of the text in an error", () => {
    const { privateKey } = generateKeyPairSync("ed25519");
    const text = encodeOpenSshKey(privateKey, { comment: "", passphrase: undefined });
    assertOwnError(() => readPrivateKey(text));
    const damaged = text.replace(/.$/m, "!");
    assert.throws(
      () => readPrivateKey(damaged),
      (error: Error) => !damaged.split("\n").some((line) => line !== "" && error.message.includes(line)),
    );
  });
});
