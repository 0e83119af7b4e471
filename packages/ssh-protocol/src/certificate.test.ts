import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertSurvivesDamage, assertThrowsCode } from "../test/malformed.test-kit.ts";
import { KEY_TYPES, keyFolder, type KeyFolder } from "../test/openssh.test-kit.ts";
import {
  NO_END,
  WireWriter,
  decodeCertificate,
  decodePublicKey,
  decodePublicKeyLine,
  encodePublicKey,
  fingerprint,
  hostCertificateFault,
  isCertificateCurrent,
  optionText,
  publicKeyOfBlob,
  verifyCertificateSignature,
  type Certificate,
  type SshErrorCode,
} from "./index.ts";

/** Signs `id.pub` with the key `ca`; the certificate's blob. */
async function certify(keys: KeyFolder, args: readonly string[]): Promise<Buffer> {
  await keys.keygen(["-q", "-s", "ca", "-I", "id of the key", ...args, "id.pub"]);
  return decodePublicKeyLine(await keys.read("id-cert.pub")).blob;
}

/** Value of a line of `ssh-keygen -L`, which reads the certificate independently. */
async function shownBy(keys: KeyFolder, name: string): Promise<string> {
  const shown = await keys.keygen(["-L", "-f", "id-cert.pub"], "");
  return new RegExp(`^ *${name}: (.*)$`, "m").exec(shown)?.[1] ?? `no ${name} in ${shown}`;
}

const NAMES_AND_TIMES = [
  "-n",
  "alice,bob",
  "-z",
  "18446744073709551615",
  "-V",
  "20200101000000Z:20300101000000Z",
];
const OPTIONS = ["-O", "force-command=echo a b", "-O", "source-address=10.0.0.0/8", "-O", "no-pty"];

const seconds = (text: string): bigint => BigInt(Date.parse(text) / 1000);

describe("certificates", () => {
  for (const [type, args] of Object.entries(KEY_TYPES)) {
    it(`${type}: reads what ssh-keygen made, as ssh-keygen -L shows it`, async () => {
      await using keys = await keyFolder();
      await keys.makeKey("ca", args);
      const { publicText } = await keys.makeKey("id", args);
      const key = decodePublicKeyLine(publicText).blob;
      const blob = await certify(keys, [...NAMES_AND_TIMES, ...OPTIONS]);
      const certificate = decodeCertificate(blob);
      assert.equal(certificate.type, `${type}-cert-v01@openssh.com`);
      assert.deepEqual(encodePublicKey(certificate.publicKey), key);
      assert.deepEqual(publicKeyOfBlob(blob), decodePublicKey(key));
      assert.equal(certificate.kind, "user");
      assert.equal(certificate.keyId, "id of the key");
      assert.equal(certificate.serial, 2n ** 64n - 1n);
      assert.deepEqual(certificate.principals, ["alice", "bob"]);
      assert.equal(certificate.validAfter, seconds("2020-01-01T00:00:00Z"));
      assert.equal(certificate.validBefore, seconds("2030-01-01T00:00:00Z"));
      assert.deepEqual(
        [...certificate.criticalOptions].map(([name, value]) => [name, optionText(value)]),
        [
          ["force-command", "echo a b"],
          ["source-address", "10.0.0.0/8"],
        ],
      );
      assert.deepEqual(
        [...certificate.extensions.keys()],
        ["permit-X11-forwarding", "permit-agent-forwarding", "permit-port-forwarding", "permit-user-rc"],
      );
      assert.ok(verifyCertificateSignature(certificate));

      assert.ok((await shownBy(keys, "Public key")).endsWith(fingerprint(key)));
      assert.ok((await shownBy(keys, "Signing CA")).includes(fingerprint(certificate.signatureKey)));
      assert.equal(await shownBy(keys, "Key ID"), '"id of the key"');
      assert.equal(await shownBy(keys, "Serial"), "18446744073709551615");
    });
  }

  it("tells why a certificate does not prove a host's name", async () => {
    await using keys = await keyFolder();
    await keys.makeKey("ca", ["-t", "ed25519"]);
    await keys.makeKey("id", ["-t", "ecdsa"]);
    const during = Date.parse("2025-01-01T00:00:00Z");
    const validity = ["-V", "20200101000000Z:20300101000000Z"];
    const host = decodeCertificate(
      await certify(keys, ["-h", "-n", "web.example.com,db.example.com", ...validity]),
    );
    const faultOf = (
      certificate: Certificate,
      name = "web.example.com",
      nowMs = during,
    ): string | undefined => hostCertificateFault(certificate, { host: name, nowMs });
    assert.equal(host.kind, "host");
    assert.equal(faultOf(host), undefined);
    assert.equal(faultOf(host, "DB.example.com"), undefined);
    assert.equal(faultOf(host, "example.com"), "other-host");
    assert.equal(faultOf(host, "web.example.com", Date.parse("2019-12-31T23:59:59Z")), "not-yet-valid");
    assert.equal(faultOf(host, "web.example.com", Date.parse("2020-01-01T00:00:00Z")), undefined);
    assert.equal(faultOf(host, "web.example.com", Date.parse("2029-12-31T23:59:59Z")), undefined);
    assert.equal(faultOf(host, "web.example.com", Date.parse("2030-01-01T00:00:00Z")), "expired");
    const changed = Buffer.from(host.signedPart);
    changed.writeUInt8(changed.readUInt8(60) ^ 1, 60);
    assert.equal(faultOf({ ...host, signedPart: changed }), "bad-signature");

    const wildcard = decodeCertificate(await certify(keys, ["-h", "-n", "*.example.com", ...validity]));
    assert.equal(faultOf(wildcard), "other-host");
    assert.equal(faultOf(decodeCertificate(await certify(keys, ["-h", ...validity]))), "other-host");
    const user = decodeCertificate(await certify(keys, ["-n", "web.example.com", ...validity]));
    assert.equal(faultOf(user), "not-a-host-certificate");
    const critical = await certify(keys, [
      "-h",
      "-n",
      "web.example.com",
      "-O",
      "critical:a@example.com=b",
      ...validity,
    ]);
    assert.equal(faultOf(decodeCertificate(critical)), "critical-option");
    const endless = decodeCertificate(await certify(keys, ["-h", "-n", "web.example.com"]));
    assert.equal(endless.validBefore, NO_END);
    assert.ok(isCertificateCurrent(endless, 8.64e15));
  });

  it("refuses an authority that signs with RSA and SHA-1", async () => {
    await using keys = await keyFolder();
    await keys.makeKey("ca", ["-t", "rsa", "-b", "2048"]);
    await keys.makeKey("id", ["-t", "ed25519"]);
    const certificate = decodeCertificate(await certify(keys, ["-n", "a", "-t", "ssh-rsa"]));
    assertThrowsCode(() => verifyCertificateSignature(certificate), "refused_algorithm");
    const sound = decodeCertificate(await certify(keys, ["-n", "a", "-t", "rsa-sha2-256"]));
    assert.ok(verifyCertificateSignature(sound));
  });

  it("refuses malformed certificates with the code that names the fault", () => {
    const key = new WireWriter().string("ssh-ed25519").string(Buffer.alloc(32)).bytes();
    const pack = (...parts: readonly string[]): Buffer =>
      parts.reduce((writer, part) => writer.string(part), new WireWriter()).bytes();
    interface Parts {
      readonly type?: string;
      readonly kind?: number;
      readonly principals?: Buffer;
      readonly options?: Buffer;
      readonly signatureKey?: Buffer;
      readonly end?: Buffer;
    }
    const made = (parts: Parts): Buffer =>
      new WireWriter()
        .string(parts.type ?? "ssh-ed25519-cert-v01@openssh.com")
        .string("nonce")
        .string(Buffer.alloc(32))
        .uint64(1n)
        .uint32(parts.kind ?? 1)
        .string("id")
        .string(parts.principals ?? "")
        .uint64(0n)
        .uint64(NO_END)
        .string(parts.options ?? "")
        .string("")
        .string("")
        .string(parts.signatureKey ?? key)
        .string("signature")
        .raw(parts.end ?? Buffer.alloc(0))
        .bytes();
    const table: readonly [string, Buffer, SshErrorCode][] = [
      ["a plain key", key, "bad_value"],
      ["another type", made({ type: "ssh-dss-cert-v01@openssh.com" }), "unsupported"],
      ["no type before the suffix", made({ type: "-cert-v01@openssh.com" }), "unsupported"],
      ["kind 3", made({ kind: 3 }), "bad_value"],
      ["principals that are cut", made({ principals: Buffer.of(0, 0, 0, 9) }), "truncated"],
      ["257 principals", made({ principals: pack(...Array.from({ length: 257 }, () => "a")) }), "too_long"],
      ["options in another order", made({ options: pack("b", "", "a", "") }), "bad_value"],
      ["an option twice", made({ options: pack("a", "", "a", "") }), "bad_value"],
      ["an option without a value", made({ options: pack("a") }), "truncated"],
      ["signed by a certificate", made({ signatureKey: made({}) }), "bad_value"],
      ["trailing byte", made({ end: Buffer.of(0) }), "trailing_data"],
    ];
    for (const [name, blob, code] of table) assertThrowsCode(() => decodeCertificate(blob), code, name);
    assert.equal(decodeCertificate(made({ principals: pack("a", "b") })).principals.length, 2);
    assertThrowsCode(() => verifyCertificateSignature(decodeCertificate(made({}))), "truncated");
  });

  it("a changed certificate has an invalid signature or fails with the package's error", async () => {
    await using keys = await keyFolder();
    await keys.makeKey("ca", ["-t", "ed25519"]);
    await keys.makeKey("id", ["-t", "ed25519"]);
    const blob = await certify(keys, ["-n", "alice"]);
    assertSurvivesDamage(
      blob,
      (bytes) => {
        if (!bytes.equals(blob)) assert.equal(verifyCertificateSignature(decodeCertificate(bytes)), false);
      },
      600,
    );
  });
});
