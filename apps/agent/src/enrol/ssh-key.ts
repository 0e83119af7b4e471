import { createCipheriv, createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { pbkdf } from "bcrypt-pbkdf";
import type { Fields } from "@devplat/secret-store";
import type { EnrolmentEngine, EnrolmentSteps } from "./engine.ts";
import { failed } from "./http.ts";

/** Work factor of the key derivation: ssh-keygen's own since OpenSSH 9.4. */
const KDF_ROUNDS = 24;
const SALT_BYTES = 16;
/** AES-256 in counter mode: a key of 32 and an initial counter of 16 bytes. */
const KEY_BYTES = 32;
const COUNTER_BYTES = 16;
const CIPHER_BLOCK = 16;
const PLAIN_BLOCK = 8;
/** Characters of a line of PEM as ssh-keygen writes it. */
const PEM_LINE = 70;
const KEY_TYPE = "ssh-ed25519";
const MIN_PASSPHRASE = 8;

export interface SshOptions {
  readonly passphrase: "required" | "recommended" | "unsafe";
  readonly comment: string;
}

/** Makes an Ed25519 key pair in OpenSSH's format, under a passphrase that is stored nowhere. */
export class SshKey implements EnrolmentEngine {
  readonly interactive: boolean;
  readonly #options: SshOptions;

  constructor(options: SshOptions) {
    this.#options = options;
    this.interactive = options.passphrase !== "unsafe";
  }

  async run(steps: EnrolmentSteps): Promise<Fields> {
    const { passphrase: wanted, comment } = this.#options;
    let passphrase = "";
    if (wanted !== "unsafe") {
      const optional = wanted === "recommended";
      const help = optional
        ? "Protects the private key; empty leaves it unprotected."
        : "Protects the private key.";
      const fault = (value: string): string | undefined => {
        if (value === "" && optional) return undefined;
        return value.length < MIN_PASSPHRASE
          ? `a passphrase has at least ${MIN_PASSPHRASE} characters`
          : undefined;
      };
      const field = { name: "passphrase", help, secret: true, optional, confirm: true, fault };
      passphrase =
        (await steps.ask("Passphrase of the new SSH key", [field])).get("passphrase")?.reveal() ?? "";
    }
    return sshKeyFields(passphrase, comment);
  }
}

/** A new key pair as fields: `private_key` (PEM), `public_key` (a line of authorized_keys), `fingerprint`. */
export function sshKeyFields(passphrase: string, comment: string): Fields {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const seed = bytesOf(privateKey.export({ format: "jwk" }).d);
  const point = bytesOf(publicKey.export({ format: "jwk" }).x);
  const blob = Buffer.concat([text(KEY_TYPE), text(point)]);
  const fingerprint = createHash("sha256").update(blob).digest("base64").replace(/=+$/, "");
  return new Map([
    ["private_key", privatePem(seed, point, blob, passphrase, comment)],
    ["public_key", `${KEY_TYPE} ${blob.toString("base64")} ${comment}\n`],
    ["fingerprint", `SHA256:${fingerprint}`],
  ]);
}

/** OpenSSH's own container (PROTOCOL.key in its sources). */
function privatePem(seed: Buffer, point: Buffer, blob: Buffer, passphrase: string, comment: string): string {
  const check = randomBytes(4);
  const content = Buffer.concat([
    check,
    check,
    text(KEY_TYPE),
    text(point),
    text(Buffer.concat([seed, point])),
    text(comment),
  ]);
  const salt = randomBytes(SALT_BYTES);
  const isOpen = passphrase === "";
  const plain = padded(content, isOpen ? PLAIN_BLOCK : CIPHER_BLOCK);
  const container = Buffer.concat([
    Buffer.from("openssh-key-v1\0"),
    text(isOpen ? "none" : "aes256-ctr"),
    text(isOpen ? "none" : "bcrypt"),
    text(isOpen ? Buffer.alloc(0) : Buffer.concat([text(salt), uint32(KDF_ROUNDS)])),
    uint32(1),
    text(blob),
    text(isOpen ? plain : encrypted(plain, passphrase, salt)),
  ]);
  const lines = container.toString("base64").match(new RegExp(`.{1,${PEM_LINE}}`, "g")) ?? [];
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join("\n")}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

function encrypted(plain: Buffer, passphrase: string, salt: Buffer): Buffer {
  const secret = Buffer.from(passphrase);
  const derived = new Uint8Array(KEY_BYTES + COUNTER_BYTES);
  if (pbkdf(secret, secret.length, salt, salt.length, derived, derived.length, KDF_ROUNDS) !== 0) {
    throw failed("the key could not be protected");
  }
  const cipher = createCipheriv("aes-256-ctr", derived.subarray(0, KEY_BYTES), derived.subarray(KEY_BYTES));
  return Buffer.concat([cipher.update(plain), cipher.final()]);
}

/** Padding is 1, 2, 3, … */
function padded(content: Buffer, block: number): Buffer {
  const missing = (block - (content.length % block)) % block;
  return Buffer.concat([content, Buffer.from(Array.from({ length: missing }, (_, index) => index + 1))]);
}

/** RFC 4251 section 5: a string is its length and its bytes. */
function text(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function bytesOf(member: string | undefined): Buffer {
  return Buffer.from(member ?? "", "base64url");
}
