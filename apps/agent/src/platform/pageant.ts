import { createHash } from "node:crypto";
import { dlopen } from "node:ffi";

/** CryptProtectMemory works on blocks of this size, in bytes (dpapi.h). */
const BLOCK_BYTES = 16;
/** CRYPTPROTECTMEMORY_CROSS_PROCESS: all processes of the user get the same bytes. */
const CROSS_PROCESS = 1;

/** Encrypts a buffer in place, with a key of the user's session. */
export type ProtectMemory = (bytes: Buffer) => void;

/**
 * Name of the pipe on which programs of PuTTY look for an SSH agent: the user, and a hash that other users cannot compute.
 * The hash covers the encrypted word and its length, as SSH encodes a string.
 */
export function pageantPipeName(username: string, protect: ProtectMemory): string {
  const word = Buffer.alloc(BLOCK_BYTES);
  word.write("Pageant");
  protect(word);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(word.length);
  const hash = createHash("sha256").update(length).update(word).digest("hex");
  return `\\\\.\\pipe\\pageant.${username}.${hash}`;
}

/** Windows' own. A failure leaves the bytes as they are, as it does in PuTTY. */
export function protectMemory(bytes: Buffer): void {
  const { functions } = dlopen("crypt32.dll", {
    CryptProtectMemory: { arguments: ["buffer", "uint32", "uint32"], return: "int32" },
  });
  functions.CryptProtectMemory(bytes, bytes.length, CROSS_PROCESS);
}
