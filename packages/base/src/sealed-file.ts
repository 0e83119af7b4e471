import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { readFile } from "node:fs/promises";
import { writeAtomically } from "./atomic-file.ts";
import { ifExists } from "./if-exists.ts";
import { isUnreadable } from "./file-damage.ts";

/** Without O_NONBLOCK a pipe in place of the file would block without end. Windows does not have it. */
const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
/** Key of the digest. */
const DIGEST = "sha256";

/** Writes a small JSON object with a digest of its content, so that reading detects a changed bit. */
export async function writeSealed(path: string, content: object): Promise<void> {
  await writeAtomically(path, `${JSON.stringify({ ...content, [DIGEST]: digestOf(content) })}\n`);
}

/**
 * Reads a JSON file. A file without a digest is from an earlier version, and is accepted.
 *
 * @returns undefined if it does not exist, `damaged` if it cannot be read or differs from what was written
 * @throws system errors that are not about the file itself
 */
export async function readSealed(path: string): Promise<unknown> {
  let value: unknown;
  try {
    const text = await ifExists(readFile(path, { encoding: "utf8", flag: READ_FLAGS }));
    if (text === undefined) return undefined;
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError || isUnreadable(error)) return "damaged";
    throw error;
  }
  if (value === null || typeof value !== "object") return "damaged";
  if (!(DIGEST in value)) return value;
  const { [DIGEST]: digest, ...content } = value;
  return digest === digestOf(content) ? content : "damaged";
}

function digestOf(content: object): string {
  return createHash("sha256").update(JSON.stringify(content)).digest("hex");
}
