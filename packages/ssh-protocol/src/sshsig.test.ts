import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { assertSurvivesDamage, assertThrowsCode } from "../test/malformed.test-kit.ts";
import { KEY_TYPES, keyFolder } from "../test/openssh.test-kit.ts";
import {
  WireWriter,
  decodePublicKeyLine,
  decodeSshsig,
  decodeSshsigData,
  describeSignedData,
  encodePublicKey,
  encodeSshsig,
  encodeSshsigData,
  publicKeyOf,
  readPrivateKey,
  sign,
  verifySshsig,
  type SshErrorCode,
  type SshsigData,
} from "./index.ts";

const MESSAGE = Buffer.from("a message\n");
const data = (hash: "sha256" | "sha512"): SshsigData => ({
  namespace: "git",
  hash,
  digest: createHash(hash).update(MESSAGE).digest(),
});

describe("SSH signatures of files", () => {
  for (const [type, args] of Object.entries(KEY_TYPES)) {
    it(`${type}: ssh-keygen and this package verify each other's signatures`, async () => {
      await using keys = await keyFolder();
      const { privateText, publicText } = await keys.makeKey("id", args);
      const { blob } = decodePublicKeyLine(publicText);
      await keys.write("message", MESSAGE);

      for (const hash of ["sha256", "sha512"] as const) {
        const text = await keys.keygen(
          ["-Y", "sign", "-n", "git", "-O", `hashalg=${hash}`, "-f", "id"],
          MESSAGE,
        );
        const theirs = decodeSshsig(text);
        assert.deepEqual(theirs.publicKey, blob);
        assert.equal(theirs.namespace, "git");
        assert.equal(theirs.hash, hash);
        assert.ok(verifySshsig(theirs, MESSAGE));
        assert.ok(!verifySshsig(theirs, Buffer.from("another message\n")));
        assert.ok(!verifySshsig({ ...theirs, namespace: "file" }, MESSAGE));

        const reading = readPrivateKey(privateText);
        assert.equal(reading.state, "open");
        if (reading.state !== "open") return;
        const signature = sign(reading, encodeSshsigData(data(hash)));
        const ours = encodeSshsig({ publicKey: blob, namespace: "git", hash, signature });
        await keys.write("message.sig", ours);
        await keys.write("allowed", `alice ${publicText}`);
        const verdict = ["-Y", "verify", "-f", "allowed", "-I", "alice", "-s", "message.sig"];
        assert.match(
          await keys.keygen([...verdict, "-n", "git"], MESSAGE),
          /^Good "git" signature for alice/,
        );
        await assert.rejects(keys.keygen([...verdict, "-n", "file"], MESSAGE));
      }
    });
  }

  it("gives back the data that was encoded, and recognises it", () => {
    for (const hash of ["sha256", "sha512"] as const) {
      assert.deepEqual(decodeSshsigData(encodeSshsigData(data(hash))), data(hash));
      assert.deepEqual(describeSignedData(encodeSshsigData(data(hash))), {
        kind: "sshsig",
        data: data(hash),
      });
    }
    assert.deepEqual(describeSignedData(Buffer.from("SSHSIG and more")), { kind: "unknown" });
  });

  it("refuses malformed data and signatures with the code that names the fault", () => {
    const made = ({ magic = "SSHSIG", namespace = "git", hash = "sha256", digest = 32, end = "" }): Buffer =>
      new WireWriter()
        .raw(Buffer.from(magic))
        .string(namespace)
        .string("reserved")
        .string(hash)
        .string(Buffer.alloc(digest))
        .raw(Buffer.from(end))
        .bytes();
    const table: readonly [string, Buffer, SshErrorCode][] = [
      ["empty", Buffer.alloc(0), "bad_value"],
      ["another magic", made({ magic: "SSHSIH" }), "bad_value"],
      ["magic alone", Buffer.from("SSHSIG"), "truncated"],
      ["no namespace", made({ namespace: "" }), "bad_value"],
      ["another hash", made({ hash: "sha1", digest: 20 }), "unsupported"],
      ["a digest of another length", made({ digest: 31 }), "bad_value"],
      ["trailing byte", made({ end: "a" }), "trailing_data"],
    ];
    for (const [name, bytes, code] of table) assertThrowsCode(() => decodeSshsigData(bytes), code, name);
    assert.equal(decodeSshsigData(made({})).namespace, "git");

    const pem = (label: string, bytes: Buffer): string =>
      `-----BEGIN ${label}-----\n${bytes.toString("base64")}\n-----END ${label}-----\n`;
    assertThrowsCode(() => decodeSshsig(pem("PGP SIGNATURE", made({}))), "bad_text");
    assertThrowsCode(
      () => decodeSshsig(pem("SSH SIGNATURE", new WireWriter().raw(Buffer.from("SSHSIG")).uint32(2).bytes())),
      "unsupported",
    );
  });

  it("ends with a result or the package's error for damaged signatures", () => {
    const { privateKey } = generateKeyPairSync("ed25519");
    const publicKey = publicKeyOf(privateKey);
    const signature = sign({ publicKey, privateKey }, encodeSshsigData(data("sha256")));
    const text = encodeSshsig({
      publicKey: encodePublicKey(publicKey),
      namespace: "git",
      hash: "sha256",
      signature,
    });
    assert.ok(verifySshsig(decodeSshsig(text), MESSAGE));
    assertSurvivesDamage(Buffer.from(text), (bytes) =>
      verifySshsig(decodeSshsig(bytes.toString("latin1")), MESSAGE),
    );
    assertSurvivesDamage(encodeSshsigData(data("sha256")), (bytes) => decodeSshsigData(bytes));
  });
});
