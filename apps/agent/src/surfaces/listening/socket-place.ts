import { randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, realpath, rename, rm } from "node:fs/promises";
import { createConnection, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { basename, dirname, join } from "node:path";
import { systemCode } from "@devplat/base";
import { AgentError } from "../../errors.ts";
import { systemPlatform } from "../../platform/platform.ts";

/** A process that can open a socket has the rights of its owner. */
const FOLDER_MODE = 0o700;
const SOCKET_MODE = 0o600;
/** Permissions of everybody but the owner. */
const OTHERS = 0o077;
/** Bytes of a path that `sun_path` holds with its final NUL: 108 on Linux (unix(7)), 104 on macOS and BSD. */
const MAX_PATH_BYTES = process.platform === "linux" ? 107 : 103;
/** A listener accepts a connection immediately. A full queue has a listener too. In milliseconds. */
const PROBE_TIMEOUT_MS = 1000;

/** A socket that has its place in the file system. */
export interface PlacedSocket {
  /** Removes the file, unless another process has replaced it. */
  remove(): Promise<void>;
}

/**
 * Has a server listen on a path, with mode 0600 in a folder with mode 0700. A socket without a listener
 * is replaced. The name appears only when the mode is right: the socket is bound under a temporary name and renamed.
 *
 * @param path absolute
 * @throws AgentError `socket_in_use` when another process answers there | `socket_refused`
 */
export async function listenOnPath(server: Server, path: string): Promise<PlacedSocket> {
  if (systemPlatform.hasNamedPipes) {
    throw refused(path, "Windows has pipes instead", "Set a name such as \\\\.\\pipe\\daemon.");
  }
  const temporary = join(dirname(path), `.${randomBytes(4).toString("hex")}`);
  if (Math.max(Buffer.byteLength(path), Buffer.byteLength(temporary)) > MAX_PATH_BYTES) {
    throw refused(path, `its path is longer than ${MAX_PATH_BYTES} bytes`, "Choose a shorter one.");
  }
  await prepareFolder(path);
  await checkFree(path);
  try {
    server.listen(temporary);
    await once(server, "listening");
    await chmod(temporary, SOCKET_MODE);
    const own = await lstat(temporary);
    await rename(temporary, path);
    return {
      remove: async () => {
        const found = await lstat(path).catch(() => undefined);
        if (found?.dev === own.dev && found.ino === own.ino) await rm(path, { force: true });
      },
    };
  } catch (error) {
    server.close();
    await rm(temporary, { force: true });
    throw refused(path, systemCode(error) ?? "unknown error", "Check who owns its folder.", error);
  }
}

/**
 * Refuses a socket of a supervisor that others can reach.
 * @param path of the socket; undefined for one without a path, such as an abstract one, which every user can reach
 * @throws AgentError `socket_refused`
 */
export async function checkActivated(path: string | undefined): Promise<string> {
  if (path === undefined) {
    throw refused("of the supervisor", "it has no place in the file system", "Set ListenStream= to a path.");
  }
  for (const place of [path, dirname(path)]) {
    const found = await lstat(place).catch(() => undefined);
    if (found?.uid === process.geteuid?.() && ((found?.mode ?? OTHERS) & OTHERS) === 0) return path;
  }
  throw refused(path, "others can reach it, or it cannot be seen", "Set SocketMode=0600 in its unit.");
}

/** The folder is the user's alone; one that is not there is made. Its own links are followed, not the socket's. */
async function prepareFolder(path: string): Promise<void> {
  const folder = dirname(path);
  try {
    await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
    const found = await lstat(await realpath(folder));
    if (!found.isDirectory()) throw refused(path, `${folder} is not a folder`);
    if (found.uid !== process.geteuid?.()) throw refused(path, `${folder} belongs to another user`);
    if ((found.mode & OTHERS) !== 0) {
      throw refused(path, `others can reach its folder ${folder}`, `chmod 700 ${folder}`);
    }
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw refused(path, systemCode(error) ?? "unknown error", `Check who owns ${folder}.`, error);
  }
}

/** @throws AgentError unless the path is free, or has a socket of this user without a listener */
async function checkFree(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  // A link too: what it leads to is not ours to replace.
  if (!found.isSocket())
    throw refused(path, "there is a file that is not a socket", `Move ${basename(path)} away.`);
  if (found.uid !== process.geteuid?.()) throw refused(path, "it belongs to another user");
  if (await isAnswering(path)) {
    throw new AgentError("socket_in_use", `another program answers on ${path}`, {
      hint: "Is another daemon of yours running? Stop it, or set another path.",
    });
  }
}

/** Whether a program listens on a socket. */
export async function isAnswering(path: string): Promise<boolean> {
  return (await probeListener(path, () => undefined)) !== undefined;
}

/**
 * Connects once to a socket, and ends the connection.
 *
 * @param look reads facts from the connection
 * @returns undefined if no program listens; `seen` is undefined if the listener does not accept the connection in time
 */
export function probeListener<Seen>(
  path: string,
  look: (connection: Socket) => Seen,
): Promise<{ readonly seen: Seen | undefined } | undefined> {
  const { promise, resolve } = Promise.withResolvers<{ readonly seen: Seen | undefined } | undefined>();
  const connection = createConnection(path);
  connection.setTimeout(PROBE_TIMEOUT_MS, () => resolve({ seen: undefined }));
  connection.once("connect", () => resolve({ seen: look(connection) }));
  connection.once("error", (error) => {
    const isFree = ["ECONNREFUSED", "ENOENT"].includes(systemCode(error) ?? "");
    resolve(isFree ? undefined : { seen: undefined });
  });
  return promise.finally(() => connection.destroy());
}

function refused(path: string, reason: string, hint?: string, cause?: unknown): AgentError {
  const options = { ...(hint !== undefined && { hint }), ...(cause !== undefined && { cause }) };
  return new AgentError("socket_refused", `cannot open the socket ${path}: ${reason}`, options);
}
