import { systemCode } from "@devplat/base";
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { signatureOf } from "../../agent-files/file-signature.ts";
import { expandHome } from "../../config/sections/rule.ts";
import { AgentError } from "../../errors.ts";
import { followLinks } from "../target/follow-links.ts";

/** Largest base file, in bytes. */
const MAX_BASE_BYTES = 1024 * 1024;

/** The file into which a file on the mount merges its content. It is only read. */
export interface BaseFile {
  readonly bytes: Buffer;
  /** See fileSignature. */
  readonly signature: string;
  /** Milliseconds since the epoch. */
  readonly modifiedMs: number;
}

/**
 * Reads a base file. It never touches the mount: its server would wait for this program, and this program for it.
 * @param path as configured: absolute or `~/…`
 * @param mountpoint absolute
 * @throws AgentError `base_refused`
 */
export async function readBaseFile(path: string, home: string, mountpoint: string): Promise<BaseFile> {
  const refuse = (reason: string): AgentError =>
    new AgentError("base_refused", `cannot read the base file ${path}: ${reason}`);
  const folder = await realpath(dirname(mountpoint)).catch(() => dirname(mountpoint));
  const mount = join(folder, basename(mountpoint));
  const { file, existing } = await followLinks(expandHome(path, home), refuse, (here) => {
    if (here === mount) throw refuse("it leads into the mount");
  });
  if (existing === undefined) throw refuse("it does not exist");
  if (!existing.isFile()) throw refuse("it is not a regular file");
  try {
    // A pipe that takes its place must not make this wait.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    const stats = await handle.stat({ bigint: true });
    if (!stats.isFile()) throw refuse("it is not a regular file");
    if (stats.size > MAX_BASE_BYTES) throw refuse("it is larger than 1 MiB");
    return {
      bytes: await handle.readFile(),
      signature: signatureOf(stats),
      modifiedMs: Number(stats.mtimeMs),
    };
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw refuse(systemCode(error) ?? "unknown error");
  }
}
