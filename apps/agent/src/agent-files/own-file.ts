import { systemCode } from "@devplat/base";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { AgentError } from "../errors.ts";

/** None of our own small files comes near it; in bytes. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads a file of this program; undefined if there is none. A pipe in its place does not block the read.
 * @throws AgentError `place_refused` if it is anything but a file that can be read
 */
export async function readOwnFile(path: string): Promise<Buffer | undefined> {
  try {
    const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw unusable(path, "it is not a regular file");
      if (found.size > MAX_BYTES) throw unusable(path, "it is too large");
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    if (systemCode(error) === "ENOENT") return undefined;
    throw unusable(path, `it cannot be read (${systemCode(error) ?? "unknown error"})`);
  }
}

/** A file of our own that could not be written. */
export function unwritableFile(path: string, error: unknown): AgentError {
  return unusable(path, `it cannot be written (${systemCode(error) ?? "unknown error"})`);
}

function unusable(path: string, reason: string): AgentError {
  return new AgentError("place_refused", `cannot use ${path}: ${reason}`, {
    hint: "Look at what is in its place, who owns it, and whether the disk is full or read-only.",
  });
}
