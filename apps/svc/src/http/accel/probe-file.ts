import { randomBytes } from "node:crypto";
import { chown, lstat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FILE_MODE, openToGroup } from "./group-access.ts";
import type { AccelRefusal } from "./accel-refusals.ts";

/** Path below which the service answers a probe. */
export const PROBE_PATH = "/_svc_accel_probe/";
/** Name of a probe file. Files that are handed over have names of another form. */
export const PROBE_NAME = /^probe-[0-9a-f]{32}$/;
/** Enough to show that a web server changes or compresses the content. */
const PROBE_BYTES = 8192;

/** The service's response to a probe that it does not hand over. `location`: the web server asked for the internal location. */
export interface ProbeResult {
  readonly refused: AccelRefusal | "location";
}

/** A file for the web server in front to send. */
export interface ProbeFile {
  readonly name: string;
  readonly content: Buffer;
  /** Never rejects. */
  remove(): Promise<void>;
}

/**
 * Writes a probe file with random content into the folder from which the web server sends, with the permissions of files that
 * are handed over.
 *
 * @throws a system error
 */
export async function writeProbeFile(folder: string, groupId: number | undefined): Promise<ProbeFile> {
  const name = `probe-${randomBytes(16).toString("hex")}`;
  const path = join(folder, name);
  // Text that compresses well, as pages do.
  const content = Buffer.from(randomBytes(PROBE_BYTES / 2).toString("hex"));
  const remove = async (): Promise<void> => unlink(path).catch(() => undefined);
  try {
    await writeFile(path, content, { flag: "wx", mode: 0o600 });
    // A web server without a group of its own runs as the user of the service, and the doctor perhaps as root.
    if (process.getuid?.() === 0) await giveToOwnerOf(folder, path);
    if (groupId !== undefined) await openToGroup(path, groupId, FILE_MODE);
  } catch (error) {
    await remove();
    throw error;
  }
  return { name, content, remove };
}

async function giveToOwnerOf(folder: string, path: string): Promise<void> {
  const { uid, gid } = await lstat(folder);
  await chown(path, uid, gid);
}
