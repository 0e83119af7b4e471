import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { systemCode } from "@devplat/base";
import { SecretStoreError } from "../errors.ts";
import { checkPrivate, syncFolder } from "./files.ts";

const CIPHER = "aes-256-gcm";
/** AES-256. */
const KEY_BYTES = 32;
/** Size of a random nonce, 96 bits (NIST SP 800-38D section 8.2). It is safe for up to 2^32 writes with one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Complete text of a key file. */
const KEY_FILE = /^v1:([A-Za-z0-9+/]{43}=)\n?$/;

/** Encrypts the values of the store. A value that was sealed under one name cannot be opened under another. */
export class ValueCipher {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** @param name path and version of the value. They are authenticated, so that rows cannot be swapped */
  seal(name: string, value: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(name));
    return Buffer.concat([nonce, cipher.update(value, "utf8"), cipher.final(), cipher.getAuthTag()]);
  }

  /** The value, or undefined if the bytes were changed or were sealed under another name or by another key. */
  open(name: string, sealed: Uint8Array): string | undefined {
    if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv(CIPHER, this.#key, sealed.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(name));
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    try {
      const body = decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES));
      return Buffer.concat([body, decipher.final()]).toString("utf8");
    } catch {
      return undefined;
    }
  }
}

/**
 * The key file. It is created in two steps, to distinguish a crash from a loss: `prepare` writes a key
 * under a pending name before the database is initialised. `adopt` renames it afterwards. A key without an
 * initialised database therefore means that the database was lost.
 *
 * Synchronous, because a key is made while the database is locked.
 */
export class KeyFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  exists(): boolean {
    return existsSync(this.path);
  }

  /** Makes a new key. It replaces a pending key of a crash, which has encrypted nothing. */
  prepare(): Buffer {
    const key = randomBytes(KEY_BYTES);
    rmSync(this.#pending, { force: true });
    const descriptor = openSync(this.#pending, "wx", 0o600);
    try {
      writeSync(descriptor, `v1:${key.toString("base64")}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    // A power failure must not remove the key and keep the database that needs it.
    syncFolder(dirname(this.path));
    return key;
  }

  adopt(): void {
    try {
      renameSync(this.#pending, this.path);
    } catch (error) {
      // Another process has opened the store and adopted the key, or there is no key.
      if (systemCode(error) !== "ENOENT") throw error;
    }
    syncFolder(dirname(this.path));
  }

  /** @throws SecretStoreError `corrupt` if the key is missing or invalid, `insecure_files` if others can read it */
  load(): Buffer {
    if (!this.exists()) this.adopt();
    if (!this.exists()) throw this.#unusable("is missing");
    checkPrivate(this.path, "file");
    const base64 = KEY_FILE.exec(readFileSync(this.path, "latin1"))?.[1];
    if (base64 === undefined) throw this.#unusable("does not hold a key");
    return Buffer.from(base64, "base64");
  }

  get #pending(): string {
    return `${this.path}.new`;
  }

  #unusable(problem: string): SecretStoreError {
    return new SecretStoreError("corrupt", `cannot open the store: its key file ${this.path} ${problem}`, {
      hint: "Restore the key file from a backup. Without it the stored values cannot be read.",
    });
  }
}
