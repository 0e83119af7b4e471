import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { Secret, systemClock } from "@devplat/base";
import type { FieldValue } from "@devplat/secret-store";
import { SshProtocolError, decodePublicKeyLine, encodePublicKey, sign, verify } from "@devplat/ssh-protocol";
import { KeyThread } from "../../../key-thread/key-thread.ts";
import { PASSPHRASE, keyCorpus, openssl, sshKeygen, type MadeKey } from "./keys.test-kit.ts";
import { readStoredKey } from "./stored-key.ts";

const DATA = Buffer.from("data to be signed");
const never = (): AbortSignal => new AbortController().signal;
const read = (fields: Readonly<Record<string, FieldValue>>) => readStoredKey(new Map(Object.entries(fields)));

describe("keys by ssh-keygen and OpenSSL in the fields of a secret", () => {
  let corpus: readonly MadeKey[];
  before(async () => {
    corpus = await keyCorpus();
  });

  it("are read with the public half that ssh-keygen -y prints, and sign", async () => {
    const opener = new KeyThread(systemClock);
    assert.equal(corpus.length, 22);
    await Promise.all(
      corpus.map(async ({ name, privateText, publicLine, hasPassphrase, showsPublicHalf }) => {
        const key = read({ private_key: privateText, other: "x" });
        assert.ok(key, name);
        assert.equal(key.publicKey !== undefined, showsPublicHalf, name);
        const half = key.privateHalf;
        assert.equal("locked" in half, hasPassphrase, name);
        const pair =
          "open" in half ? half.open : await opener.open(half.locked.text, new Secret(PASSPHRASE), never());
        assert.ok(verify(pair.publicKey, sign(pair, DATA), DATA), name);
        if (publicLine !== "") {
          const { blob } = decodePublicKeyLine(publicLine);
          assert.deepEqual(encodePublicKey(pair.publicKey), blob, name);
          if (key.publicKey !== undefined) assert.deepEqual(encodePublicKey(key.publicKey), blob, name);
          const named = read({ private_key: privateText, public_key: `${publicLine} work laptop\n` });
          assert.deepEqual(named?.publicKey && encodePublicKey(named.publicKey), blob, name);
        }
      }),
    );
  });

  it("a wrong passphrase is refused as such, for every format", async () => {
    const opener = new KeyThread(systemClock);
    const locked = corpus.filter(({ hasPassphrase }) => hasPassphrase);
    assert.equal(locked.length, 11);
    await Promise.all(
      locked.map(({ name, privateText }) =>
        assert.rejects(
          opener.open(new Secret(privateText), new Secret("wrong"), never()),
          { code: "wrong_passphrase" },
          name,
        ),
      ),
    );
  });

  it("the main thread goes on while a passphrase is tried, and the caller can give up", async () => {
    const { privateText } = await sshKeygen(["-t", "ed25519"], PASSPHRASE, ["-a", "32"]);
    const opener = new KeyThread(systemClock);
    let isDone = false;
    const opening = opener
      .open(new Secret(privateText), new Secret(PASSPHRASE), never())
      .finally(() => (isDone = true));
    // Each turn of the event loop would wait for the whole derivation in the same thread.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isDone, false);
    assert.equal((await opening).publicKey.type, "ssh-ed25519");
    const giveUp = new AbortController();
    const second = opener.open(new Secret(privateText), new Secret(PASSPHRASE), giveUp.signal);
    giveUp.abort(new Error("given up"));
    await assert.rejects(second, /given up/);
  });

  it("the comment comes from the key, else from public_key, and is safe for a terminal", async () => {
    const plain = await sshKeygen(["-t", "ed25519"]);
    assert.equal(read({ private_key: plain.privateText })?.comment, "ada@example");
    const locked = await sshKeygen(["-t", "ed25519"], PASSPHRASE, ["-a", "2"]);
    const blob = locked.publicText.trim().split(" ").slice(0, 2).join(" ");
    const comment = (text: string) => read({ private_key: locked.privateText, public_key: text })?.comment;
    assert.equal(comment(`${blob} from the line`), "from the line");
    assert.equal(comment(`${blob} \u001b[31mred`), "\\u{1b}[31mred");
    assert.equal(comment(plain.publicText), "");
    assert.equal(comment(`${blob} ${"x".repeat(500)}`)?.length, 200);
    assert.equal(comment("not a line"), "");
  });

  it("a passphrase of the secret itself is kept with the key", async () => {
    const { privateText } = await sshKeygen(["-t", "ed25519"], PASSPHRASE, ["-a", "2"]);
    const key = read({ private_key: privateText, passphrase: PASSPHRASE });
    assert.ok(key && "locked" in key.privateHalf);
    assert.equal(key.privateHalf.locked.passphrase?.reveal(), PASSPHRASE);
    assert.doesNotMatch(JSON.stringify(key), /hunter2|PRIVATE KEY/);
  });

  it("a secret without a private_key is not a key", () => {
    assert.equal(read({}), undefined);
    assert.equal(read({ public_key: "ssh-ed25519 AAAA", password: "hunter2" }), undefined);
  });

  it("malformed keys are refused with a code, and never quoted", async () => {
    const { privateText } = await sshKeygen(["-t", "ed25519"]);
    const other = await sshKeygen(["-t", "ed25519"]);
    const lines = privateText.split("\n");
    const swapped = [lines[0], ...lines.slice(1, 3), ...other.privateText.split("\n").slice(3)].join("\n");
    const table: Readonly<Record<string, FieldValue>> = {
      "not a text": { number: "1" },
      "a list": [privateText],
      null: null,
      empty: "",
      blank: " \n",
      "other text": "hunter2",
      "a public key": other.publicText,
      "a certificate": "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n",
      "no end": lines.slice(0, -2).join("\n"),
      "no begin": lines.slice(1).join("\n"),
      "cut in the middle": [...lines.slice(0, 3), ...lines.slice(-2)].join("\n"),
      "two halves of different keys": swapped,
      "not base64": privateText.replace(/A/g, "!"),
      "too long": `${privateText}${" ".repeat(64 * 1024)}`,
      "empty PKCS#8": "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
      "damaged PKCS#8": "-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----\n",
      "RSA of 1024 bits": await openssl(["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]),
      Ed448: await openssl(["-algorithm", "ed448"]),
      X25519: await openssl(["-algorithm", "x25519"]),
      "EC on another curve": await openssl(["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"]),
    };
    for (const [name, text] of Object.entries(table)) {
      assert.throws(
        () => read({ private_key: text }),
        (error: Error) => {
          assert.ok(error instanceof SshProtocolError, `${name}: ${String(error)}`);
          assert.doesNotMatch(error.message, /hunter2|-----|AAAA/, name);
          return true;
        },
        name,
      );
    }
  });
});
