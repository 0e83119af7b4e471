import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { Secret } from "@devplat/base";
import { SvcError } from "../errors.ts";

/** How a backup is encrypted: for recipients who have the identities, or to a passphrase. */
export type Protection =
  | { readonly kind: "recipients"; readonly recipients: readonly string[] }
  | { readonly kind: "passphrase"; readonly passphrase: Secret };

/** Secrets that open a backup. */
export type Unlocking =
  | { readonly kind: "identities"; readonly identities: readonly Secret[] }
  | { readonly kind: "passphrase"; readonly passphrase: () => Promise<Secret> };

/** Minimum length of a passphrase. age adds 2^18 rounds of scrypt, which shorter ones still do not survive. */
export const MIN_PASSPHRASE_LENGTH = 8;
/** Maximum bytes of the header: several hundred recipients. The library itself sets no limit. */
const MAX_HEADER_BYTES = 64 * 1024;
const FIRST_LINE = "age-encryption.org/v1\n";
const PASSPHRASE_STANZA = "-> scrypt ";
/** Salt and work factor, a power of two. */
const WORK_FACTOR = /^-> scrypt \S+ (\d+)$/m;
/** Maximum work factor that the library accepts: 1 GiB of memory. age writes 18. */
const MAX_WORK_FACTOR = 20;
/** Begins the last line of the header. */
const LAST_LINE = "\n--- ";

/** @throws SvcError `usage`: a text is not a recipient of age */
export async function encrypted(protection: Protection, plain: Readable): Promise<Readable> {
  const { Encrypter } = await import("age-encryption");
  const encrypter = new Encrypter();
  if (protection.kind === "passphrase") encrypter.setPassphrase(protection.passphrase.reveal());
  else {
    for (const recipient of protection.recipients) {
      try {
        encrypter.addRecipient(recipient);
      } catch {
        throw notARecipient(recipient);
      }
    }
  }
  const stream = await encrypter.encrypt(Readable.toWeb(plain) as globalThis.ReadableStream<Uint8Array>);
  return Readable.fromWeb(stream as ReadableStream<Uint8Array>);
}

/** Quotes only texts that look like recipients. Somebody who mixes them up must not find an identity in a log. */
function notARecipient(recipient: string): SvcError {
  const quoted = /^age1[0-9a-z]*$/.test(recipient) ? `"${recipient}"` : "a recipient that was given";
  return new SvcError("usage", `Cannot encrypt the backup: ${quoted} is not a recipient of age`, {
    hint: "A recipient begins with age1. age-keygen prints it as the public key.",
  });
}

/** @throws SvcError `backup_refused`, `backup_locked` */
export async function decrypted(unlocking: Unlocking, file: Readable): Promise<Readable> {
  const chunks = file[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const start = await readHeader(chunks);
  const header = start.toString("latin1", 0, start.indexOf(LAST_LINE));
  const wantsPassphrase = header.includes(`\n${PASSPHRASE_STANZA}`);
  if (wantsPassphrase) refuseWork(header);
  const { Decrypter } = await import("age-encryption");
  const decrypter = new Decrypter();
  if (wantsPassphrase) {
    if (unlocking.kind !== "passphrase") {
      throw new SvcError(
        "backup_locked",
        "Cannot open the backup: it is encrypted to a passphrase, not to a recipient",
        {
          hint: "Leave out --identity.",
        },
      );
    }
    decrypter.addPassphrase((await unlocking.passphrase()).reveal());
  } else {
    if (unlocking.kind !== "identities") {
      throw new SvcError(
        "backup_locked",
        "Cannot open the backup: it is encrypted to a recipient, not to a passphrase",
        {
          hint: "Give the file with the identity of the recipient: --identity.",
        },
      );
    }
    for (const identity of unlocking.identities) decrypter.addIdentity(identity.reveal());
  }
  const whole = Readable.from(rest(start, chunks), { objectMode: false });
  try {
    const stream = await decrypter.decrypt(Readable.toWeb(whole) as globalThis.ReadableStream<Uint8Array>);
    return Readable.fromWeb(stream as ReadableStream<Uint8Array>);
  } catch (error) {
    whole.destroy();
    const isWrong = error instanceof Error && error.message.startsWith("no identity matched");
    throw isWrong
      ? new SvcError(
          "backup_locked",
          wantsPassphrase
            ? "Cannot open the backup: the passphrase is wrong"
            : "Cannot open the backup: it is not encrypted to the recipient of this identity",
        )
      : damaged(error);
  }
}

/** Before a passphrase is asked for. */
function refuseWork(header: string): void {
  const factor = Number(WORK_FACTOR.exec(header)?.[1] ?? 0);
  if (factor <= MAX_WORK_FACTOR) return;
  throw new SvcError(
    "backup_refused",
    `Cannot open the backup: its passphrase needs 2^${factor} rounds, and the limit is 2^${MAX_WORK_FACTOR}`,
    { hint: "No version of this program writes such a file. Use another backup." },
  );
}

/** Error for a file whose bytes are not those that were written. */
export function damaged(cause: unknown): SvcError {
  return new SvcError("backup_refused", "Cannot read the backup: the file is damaged or cut off", {
    cause,
    hint: "Nothing was changed. Use another backup, or copy the file again.",
  });
}

async function* rest(start: Buffer, chunks: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield start;
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
}

/** @returns the beginning of the file, with the whole header */
async function readHeader(chunks: AsyncIterator<Buffer>): Promise<Buffer> {
  let start = Buffer.alloc(0);
  while (!start.includes(LAST_LINE)) {
    const known = Math.min(start.length, FIRST_LINE.length);
    if (start.toString("latin1", 0, known) !== FIRST_LINE.slice(0, known)) throw notEncrypted();
    if (start.length > MAX_HEADER_BYTES) throw damaged(new Error("the header is too long"));
    const next = await chunks.next();
    if (next.done === true) {
      throw start.length < FIRST_LINE.length ? notEncrypted() : damaged(new Error("no end of the header"));
    }
    start = Buffer.concat([start, next.value]);
  }
  if (!start.toString("latin1", 0, FIRST_LINE.length).startsWith(FIRST_LINE)) throw notEncrypted();
  return start;
}

function notEncrypted(): SvcError {
  return new SvcError("backup_refused", "Cannot read the backup: the file is not encrypted with age", {
    hint: "Is it the right file? A backup begins with 'age-encryption.org/v1'.",
  });
}
