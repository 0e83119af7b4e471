import { randomBytes } from "node:crypto";
import { lstat, open, readdir, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { FILE_MODE } from "./group-access.ts";
import type { AccelRefusal } from "./accel-refusals.ts";

/** Path below which the service answers a probe. */
export const PROBE_PATH = "/_svc_accel_probe/";
/** Name of a probe file. Files that are handed over have names of another form. */
export const PROBE_NAME = /^probe-[0-9a-f]{32}$/;
/** Milliseconds in which a probe file counts. `svc doctor` removes it after its one request, or dies. */
export const PROBE_MS = 60_000;
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
 * are handed over. Removes old ones.
 *
 * @throws a system error
 */
export async function writeProbeFile(folder: string, groupId: number | undefined): Promise<ProbeFile> {
  await removeOldProbes(folder);
  const name = `probe-${randomBytes(16).toString("hex")}`;
  const path = join(folder, name);
  // Text that compresses well, as pages do.
  const content = Buffer.from(randomBytes(PROBE_BYTES / 2).toString("hex"));
  const remove = async (): Promise<void> => unlink(path).catch(() => undefined);
  const handle = await open(path, "wx", 0o600);
  try {
    await handle.writeFile(content);
    await setPermissions(handle, folder, groupId);
  } catch (error) {
    await remove();
    throw error;
  } finally {
    await handle.close();
  }
  return { name, content, remove };
}

/**
 * By the descriptor: the doctor is perhaps run by root, and the path belongs to the user of the service.
 *
 * @throws a system error
 */
async function setPermissions(
  handle: FileHandle,
  folder: string,
  groupId: number | undefined,
): Promise<void> {
  const { uid, gid } = await lstat(folder);
  // A web server without a group of its own runs as the user of the service.
  if (process.getuid?.() === 0) await handle.chown(uid, groupId ?? gid);
  else if (groupId !== undefined) await handle.chown(-1, groupId);
  if (groupId !== undefined) await handle.chmod(FILE_MODE);
}

/** Removes the probe files of doctors that were killed. Never rejects. */
async function removeOldProbes(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!PROBE_NAME.test(name)) continue;
    const path = join(folder, name);
    const facts = await lstat(path).catch(() => undefined);
    if (facts === undefined || Date.now() - facts.mtimeMs < PROBE_MS) continue;
    await unlink(path).catch(() => undefined);
  }
}
