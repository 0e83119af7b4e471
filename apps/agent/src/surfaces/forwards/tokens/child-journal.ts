import { ifExists, Secret, writeAtomically, type Logger } from "@devplat/base";
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { z } from "zod";

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Says what the derived key is for. */
const PURPOSE = "child tokens";

const entriesSchema = z.array(
  z.object({ owner: z.string(), token: z.string().min(1), accessor: z.string(), expires_at: z.number() }),
);

/** A child token that was granted and is not known to be gone. */
export interface JournalEntry {
  readonly owner: string;
  readonly token: Secret;
  readonly accessor: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

export interface ChildJournalParts {
  /** File in the state folder. */
  readonly path: string;
  /** Key of the state folder. */
  readonly key: Secret<Buffer>;
  readonly logger: Logger;
}

/** Remembers child tokens over a crash, encrypted, so that the next start can revoke them. */
export class ChildJournal {
  readonly #parts: ChildJournalParts;

  constructor(parts: ChildJournalParts) {
    this.#parts = parts;
  }

  /** The entries that were written last; none if they cannot be read: the tokens end by themselves. */
  async read(): Promise<readonly JournalEntry[]> {
    const { path, logger } = this.#parts;
    try {
      const bytes = await ifExists(readFile(path));
      if (bytes === undefined) return [];
      const entries = entriesSchema.parse(JSON.parse(this.#decrypt(bytes)));
      return entries.map(({ owner, token, accessor, expires_at: expiresAt }) => {
        return { owner, token: new Secret(token), accessor, expiresAt };
      });
    } catch {
      logger.warn({ path }, "the record of lent tokens cannot be read; they end by themselves");
      return [];
    }
  }

  /** Replaces the content. Without entries there is no file. */
  async write(entries: readonly JournalEntry[]): Promise<void> {
    const { path } = this.#parts;
    if (entries.length === 0) return await rm(path, { force: true });
    const plain = entries.map(({ owner, token, accessor, expiresAt }) => {
      return { owner, token: token.reveal(), accessor, expires_at: expiresAt };
    });
    await writeAtomically(path, this.#encrypt(JSON.stringify(plain)), { mode: 0o600 });
  }

  #encrypt(text: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#cipherKey(), nonce);
    const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
  }

  #decrypt(bytes: Buffer): string {
    const decipher = createDecipheriv(CIPHER, this.#cipherKey(), bytes.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    const opened = [decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()];
    return Buffer.concat(opened).toString("utf8");
  }

  #cipherKey(): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#parts.key.reveal(), "", PURPOSE, KEY_BYTES));
  }
}
