import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { Secret } from "@devplat/base";
import { SvcError } from "../errors.ts";

/** AES-256-GCM with a random 96-bit nonce (NIST SP 800-38D section 8.2.2); 2^32 messages per key are safe. */
const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FORMAT = "v1";

interface Key {
  /** First 8 hex digits of the SHA-256 of the key: tells keys apart, gives nothing away. */
  readonly id: string;
  readonly bytes: Buffer;
}

/**
 * Encrypts secrets for storage. A sealed text names its key, and holds only for the record that it was sealed for:
 * a row copied to another record does not decrypt.
 */
export class SecretBox {
  readonly #current: Key;
  readonly #byId: ReadonlyMap<string, Key>;

  /**
   * @param key 64 hex digits
   * @param previous an earlier key, which only decrypts
   */
  constructor(key: Secret, previous?: Secret) {
    this.#current = keyOf(key);
    const keys = previous === undefined ? [this.#current] : [keyOf(previous), this.#current];
    this.#byId = new Map(keys.map((each) => [each.id, each]));
  }

  /** @param recordId bound to the ciphertext as additional authenticated data */
  seal(secret: Secret, recordId: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#current.bytes, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(recordId));
    const sealed = Buffer.concat([
      cipher.update(secret.reveal(), "utf8"),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    return [FORMAT, this.#current.id, nonce.toString("base64url"), sealed.toString("base64url")].join(".");
  }

  /** Whether a sealed text is under the current key. */
  isCurrent(text: string): boolean {
    return text.startsWith(`${FORMAT}.${this.#current.id}.`);
  }

  /** The id of the key that a sealed text needs, if it is not here. */
  unknownKey(text: string): string | undefined {
    const keyId = text.split(".")[1] ?? "";
    return this.#byId.has(keyId) ? undefined : keyId;
  }

  /** @throws SvcError `encryption_key`: another key, another record, or a changed text */
  open(text: string, recordId: string): Secret {
    const [format, keyId, nonce, sealed] = text.split(".");
    const key = this.#byId.get(keyId ?? "");
    if (format !== FORMAT || key === undefined || nonce === undefined || sealed === undefined) {
      throw new SvcError("encryption_key", `A stored secret was encrypted with another key (id ${keyId})`, {
        hint: "Set SVC_ENCRYPTION_KEY, or SVC_ENCRYPTION_KEY_PREVIOUS, to the key that it was encrypted with.",
      });
    }
    const bytes = Buffer.from(sealed, "base64url");
    const body = bytes.subarray(0, Math.max(0, bytes.length - TAG_BYTES));
    try {
      const decipher = createDecipheriv(ALGORITHM, key.bytes, Buffer.from(nonce, "base64url"), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(recordId));
      decipher.setAuthTag(bytes.subarray(body.length));
      return new Secret(decipher.update(body, undefined, "utf8") + decipher.final("utf8"));
    } catch (error) {
      throw new SvcError("encryption_key", "A stored secret does not decrypt: it was changed or moved", {
        cause: error,
      });
    }
  }
}

/** Id of a key, by which sealed texts name it. */
export function encryptionKeyId(key: Secret): string {
  return keyOf(key).id;
}

function keyOf(hex: Secret): Key {
  const bytes = Buffer.from(hex.reveal(), "hex");
  if (bytes.length !== 32) throw new TypeError("An encryption key has 32 bytes");
  return { id: createHash("sha256").update(bytes).digest("hex").slice(0, 8), bytes };
}
