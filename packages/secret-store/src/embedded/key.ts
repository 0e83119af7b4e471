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
/** NIST SP 800-38D section 8.2: 96-bit nonces, drawn at random; safe up to 2^32 writes under one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The whole text of a key file. */
const KEY_FILE = /^v1:([A-Za-z0-9+/]{43}=)\n?$/;

/** Encrypts the values of the store. What is sealed as one thing does not open as another. */
export class ValueCipher {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** @param name what the value is (path and version); bound to it, so that rows cannot be swapped */
  seal(name: string, value: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(name));
    return Buffer.concat([nonce, cipher.update(value, "utf8"), cipher.final(), cipher.getAuthTag()]);
  }

  /** The value, or undefined if the bytes were changed, belong to another name, or were sealed by another key. */
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
 * The key file. It is made in two steps, so that a crash at any instant is told from a loss: `prepare` writes a key
 * under a pending name before the database is initialised, `adopt` gives it its name afterwards. A key without an
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

  /** Makes a new key. One that a crash left under the pending name has sealed nothing and is replaced. */
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
    // A power cut must not take the key and leave the database that needs it.
    syncFolder(dirname(this.path));
    return key;
  }

  adopt(): void {
    try {
      renameSync(this.#pending, this.path);
    } catch (error) {
      // Another process that opened the store in between has done it, or there is no key at all.
      if (systemCode(error) !== "ENOENT") throw error;
    }
    syncFolder(dirname(this.path));
  }

  /** @throws SecretStoreError `corrupt` if there is none or it is no key, `insecure_files` if others can read it */
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
