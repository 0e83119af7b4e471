import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { writeAtomically } from "./atomic-file.ts";
import { ifExists } from "./if-exists.ts";
import { isUnreadable } from "./file-damage.ts";

/** Key of the digest. */
const DIGEST = "sha256";

/** Writes a small JSON object with a digest of its content, so that a changed bit shows when it is read. */
export async function writeSealed(path: string, content: object): Promise<void> {
  await writeAtomically(path, `${JSON.stringify({ ...content, [DIGEST]: digestOf(content) })}\n`);
}

/**
 * Reads a JSON file. One without a digest is of an earlier version, and taken as it is.
 *
 * @returns undefined: it is not there; `damaged`: it is not what was written, or cannot be read
 * @throws system errors that do not lie in the file itself
 */
export async function readSealed(path: string): Promise<unknown> {
  let value: unknown;
  try {
    const text = await ifExists(readFile(path, "utf8"));
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
