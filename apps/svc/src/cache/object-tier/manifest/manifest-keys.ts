import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { Secret } from "@devplat/base";

/** Hex digits of a key's id. Keys are told apart by them. They say nothing about the key. */
const KEY_ID_DIGITS = 16;
const KEY_BYTES = 32;
/** Uses that keys are derived for (RFC 5869, the parameter info). A change of one makes all earlier manifests unreadable. */
const USES = {
  manifests: "svc object tier: HMAC of manifests, 1",
  id: "svc object tier: id of the key, 1",
  names: "svc object tier: hidden names, 1",
} as const;
const FROM_ENCRYPTION_KEY = "svc object tier: key from the encryption key, 1";

interface DerivedKey {
  readonly id: string;
  readonly manifests: Buffer;
}

/** Keys that authenticate manifests: the one that signs, and those that only verify. */
export class ManifestKeys {
  readonly #current: DerivedKey;
  readonly #byId: ReadonlyMap<string, DerivedKey>;
  /** Key that hides names of repositories. It is another one after each rotation. */
  readonly names: Secret<Buffer>;

  /**
   * @param key 64 hex digits
   * @param previous earlier keys, which only verify
   */
  constructor(key: Secret, previous: readonly Secret[] = []) {
    this.#current = derive(key);
    const all = [...previous.map(derive), this.#current];
    this.#byId = new Map(all.map((each) => [each.id, each]));
    this.names = new Secret(expand(bytesOf(key), USES.names, KEY_BYTES));
  }

  /** Id of the key that signs. */
  get currentId(): string {
    return this.#current.id;
  }

  /** HMAC with the current key, in hex. */
  sign(parts: readonly (string | Uint8Array)[]): string {
    return hmac(this.#current.manifests, parts).toString("hex");
  }

  /** @returns undefined: no key here has this id */
  verify(keyId: string, mac: string, parts: readonly (string | Uint8Array)[]): boolean | undefined {
    const key = this.#byId.get(keyId);
    if (key === undefined) return undefined;
    const wanted = hmac(key.manifests, parts);
    const given = Buffer.from(mac, "hex");
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  }
}

/** The key that is used if no own one is configured. Everyone who has the encryption key derives the same. */
export function keyFromEncryptionKey(encryptionKey: Secret): Secret {
  return new Secret(expand(bytesOf(encryptionKey), FROM_ENCRYPTION_KEY, KEY_BYTES).toString("hex"));
}

function derive(key: Secret): DerivedKey {
  const bytes = bytesOf(key);
  return {
    id: expand(bytes, USES.id, KEY_ID_DIGITS / 2).toString("hex"),
    manifests: expand(bytes, USES.manifests, KEY_BYTES),
  };
}

function expand(key: Buffer, use: string, length: number): Buffer {
  return Buffer.from(hkdfSync("sha256", key, "", use, length));
}

function hmac(key: Buffer, parts: readonly (string | Uint8Array)[]): Buffer {
  const mac = createHmac("sha256", key);
  for (const part of parts) mac.update(part);
  return mac.digest();
}

function bytesOf(hex: Secret): Buffer {
  const bytes = Buffer.from(hex.reveal(), "hex");
  if (bytes.length !== KEY_BYTES) throw new TypeError(`A key of the object tier has ${KEY_BYTES} bytes`);
  return bytes;
}
