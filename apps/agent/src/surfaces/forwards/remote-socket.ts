import { randomBytes } from "node:crypto";
import { posix } from "node:path";
import { ForwardError } from "./errors/forward-error.ts";
import { INVISIBLE_CHARACTERS, MAX_REMOTE_SOCKET_BYTES } from "./file/remote-entry.ts";
import { ConnectionError, messageLine, type Failure, type FailureClass } from "./openssh/failure.ts";
import type { Master } from "./openssh/master.ts";
import { proofOf, type Proof } from "./proof.ts";
import { isFolder, isSocket, type FileAttributes } from "./sftp/packets.ts";
import { SftpSession } from "./sftp/session.ts";

const FOLDER_MODE = 0o700;
/** Write permission of everybody but the owner. */
const OTHERS_WRITE = 0o022;

/** This host's ends of the forwards of one connection. */
export interface LocalEnds {
  /** Leads to the remote socket. */
  readonly probe: string;
  /** The remote socket leads here. */
  readonly peer: string;
  /** Shown by the peer socket. */
  readonly nonce: string;
  /** Host of the remote whose peer socket shows a nonce. */
  readonly hostOf: (nonce: string) => string | undefined;
}

/** A socket that an earlier connection of this daemon has made. */
export interface FormerSocket {
  readonly path: string;
  readonly modified: number | undefined;
}

export interface RemoteSocketParts {
  readonly master: Master;
  readonly ends: LocalEnds;
  /** `remote_socket` of the entry. */
  readonly socket: string;
  readonly former: FormerSocket | undefined;
}

/** Result of making the remote socket. */
export interface MadeSocket {
  readonly made: FormerSocket;
  /** The socket was seen to lead here. False where the server denies local forwards. */
  readonly proven: boolean;
}

/**
 * Makes the remote socket: its folder is made, a stale socket of the account is removed once, the forward is requested, and
 * it is proved that the socket leads to this host.
 *
 * @throws ConnectionError
 */
export async function makeRemoteSocket(parts: RemoteSocketParts): Promise<MadeSocket> {
  const { master } = parts;
  // Without SFTP nothing can be looked at; a socket in a folder that exists works nevertheless.
  const sftp = await SftpSession.open(master.startSubsystem("sftp")).catch(() => undefined);
  try {
    return await new RemoteSocket(parts, sftp, await expanded(parts.socket, sftp)).make();
  } catch (error) {
    if (error instanceof ConnectionError || !(error instanceof ForwardError)) throw error;
    throw new ConnectionError({ class: "socket-folder", message: error.message }, { cause: error });
  } finally {
    sftp?.close();
  }
}

/**
 * Cancels the forward, and removes the file of its socket, which stays on the server otherwise. Without SFTP the file cannot
 * be removed. Best effort.
 */
export async function removeRemoteSocket(
  master: Master,
  { probe, peer, nonce }: LocalEnds,
  { made: { path, modified }, proven }: MadeSocket,
): Promise<void> {
  const sftp = await SftpSession.open(master.startSubsystem("sftp")).catch(() => undefined);
  try {
    // Somebody else may have put another one there, in the same second.
    const isOther = proven && (await proofOf(probe, nonce)) !== "own";
    await master.cancelRemote(path, peer);
    if (isOther) return;
    if (modified !== undefined && (await sftp?.lstat(path))?.modified === modified) await sftp?.remove(path);
  } finally {
    sftp?.close();
  }
}

class RemoteSocket {
  readonly #parts: RemoteSocketParts;
  readonly #sftp: SftpSession | undefined;
  readonly #path: string;

  constructor(parts: RemoteSocketParts, sftp: SftpSession | undefined, path: string) {
    this.#parts = parts;
    this.#sftp = sftp;
    this.#path = path;
  }

  async make(): Promise<MadeSocket> {
    const { master, ends } = this.#parts;
    await this.#prepareFolder();
    const present = await this.#sftp?.lstat(this.#path);
    if (this.#sftp === undefined) {
      // A server that unlinks before it binds would take the socket of another program.
      await master.forwardLocal(ends.probe, this.#path);
      this.#refuseForeign(await this.#proof());
      await this.#forward();
    } else if (present === undefined) {
      await Promise.all([master.forwardLocal(ends.probe, this.#path), this.#forward()]);
    } else {
      await master.forwardLocal(ends.probe, this.#path);
      await this.#removeStale(present);
      await this.#forward();
    }
    const proof = await this.#proof();
    this.#refuseForeign(proof);
    const found = await this.#sftp?.lstat(this.#path);
    return { made: { path: this.#path, modified: found?.modified }, proven: proof === "own" };
  }

  async #proof(): Promise<Proof> {
    const { probe, nonce, hostOf } = this.#parts.ends;
    return await proofOf(probe, nonce, hostOf);
  }

  /** @throws ConnectionError if something else than this connection's peer socket answers */
  #refuseForeign(proof: Proof): void {
    if (proof === "foreign") throw this.#failed("socket-bind", "another program answers there");
    if (typeof proof === "string") return;
    const { failure } = this.#failed("socket-bind", `this daemon's own forward to ${proof.forward} uses it`);
    throw new ConnectionError({ ...failure, ownForward: proof.forward });
  }

  async #forward(): Promise<void> {
    const { master, ends } = this.#parts;
    try {
      await master.forwardRemote(this.#path, ends.peer);
    } catch (error) {
      if (!(error instanceof ConnectionError) || error.failure.class !== "forwarding-denied") throw error;
      throw new ConnectionError(await this.#reasonOfRefusal(), { cause: error });
    }
  }

  async #prepareFolder(): Promise<void> {
    if (this.#sftp === undefined) return;
    const folder = posix.dirname(this.#path);
    const found = await this.#sftp.lstat(folder);
    if (found === undefined) {
      try {
        return await this.#sftp.mkdir(folder, FOLDER_MODE);
      } catch (error) {
        throw (await this.#diskFailure(posix.dirname(folder))) ?? error;
      }
    }
    const fault = await this.#folderFault(await this.#linkTarget(folder, found));
    if (fault !== undefined) throw this.#failed("socket-folder", fault);
  }

  /** A folder may be a link, of the account or of root; the socket may not. */
  async #linkTarget(folder: string, found: FileAttributes): Promise<FileAttributes | undefined> {
    if (isFolder(found) || this.#sftp === undefined) return found;
    return await this.#sftp.lstat(await this.#sftp.realpath(folder));
  }

  async #folderFault(folder: FileAttributes | undefined): Promise<string | undefined> {
    if (folder === undefined || !isFolder(folder)) return "its folder is missing";
    if (folder.uid !== (await this.#account())) return "its folder belongs to another account";
    if (((folder.mode ?? 0) & OTHERS_WRITE) !== 0) return "others can write to its folder";
    return undefined;
  }

  /** User id of the account. SFTP does not tell it; the home folder belongs to the account. */
  async #account(): Promise<number | undefined> {
    const home = await this.#sftp?.realpath(".");
    return home === undefined ? undefined : (await this.#sftp?.lstat(home))?.uid;
  }

  /** Removes what an earlier connection has left. Called once for each connection. */
  async #removeStale(found: FileAttributes): Promise<void> {
    if (!isSocket(found)) throw this.#failed("socket-bind", "something else than a socket is there");
    if (found.uid !== (await this.#account()))
      throw this.#failed("socket-bind", "it belongs to another account");
    const { former } = this.#parts;
    const isFormer =
      former?.path === this.#path && former.modified !== undefined && former.modified === found.modified;
    if (!isFormer) {
      const proof = await this.#proof();
      if (proof !== "nobody") this.#refuseForeign(proof === "own" ? "foreign" : proof);
      if (!(await this.#localForwardsWork())) {
        throw this.#failed(
          "socket-bind",
          "a socket is there, and the server does not let us see who uses it",
        );
      }
    }
    await this.#sftp?.remove(this.#path);
  }

  /** Whether a connection through the server to a socket that surely answers is made. */
  async #localForwardsWork(): Promise<boolean> {
    const { master, ends } = this.#parts;
    const name = randomBytes(4).toString("hex");
    const remote = posix.join(posix.dirname(this.#path), `.${name}`);
    const local = `${ends.probe}.${name}`;
    try {
      await master.forwardRemote(remote, ends.peer);
    } catch {
      // Then the forward itself is refused as well, and says why.
      return true;
    }
    try {
      await master.forwardLocal(local, remote);
      return (await proofOf(local, ends.nonce)) === "own";
    } finally {
      await master.cancelLocal(local, remote).catch(() => undefined);
      await master.cancelRemote(remote, ends.peer).catch(() => undefined);
      await this.#sftp?.remove(remote).catch(() => undefined);
    }
  }

  async #reasonOfRefusal(): Promise<Failure> {
    if (this.#sftp === undefined) return this.#reasonWithoutSftp();
    const found = await this.#sftp.lstat(this.#path);
    if (found !== undefined) return this.#failed("socket-bind", "something is there").failure;
    const folder = posix.dirname(this.#path);
    const attributes = await this.#sftp.lstat(folder);
    if (attributes === undefined) {
      return this.#failed("socket-folder", "its folder is missing").failure;
    }
    const failure = (await this.#diskFailure(folder))?.failure;
    return failure ?? this.#failed("forwarding-denied", "the server refuses to forward it").failure;
  }

  /** The failure, if the file system of a folder takes no file. */
  async #diskFailure(folder: string): Promise<ConnectionError | undefined> {
    const disk = await this.#sftp?.diskFault(folder).catch(() => undefined);
    if (disk === undefined) return undefined;
    const { failure } = this.#failed("socket-folder", `the disk of its folder is ${disk}`);
    return new ConnectionError({ ...failure, disk });
  }

  /** The server does not say why it refuses a forward. A socket of an earlier connection is the usual reason. */
  #reasonWithoutSftp(): Failure {
    const { failure } =
      this.#parts.former?.path === this.#path
        ? this.#failed("socket-bind", "the socket of the connection before is there")
        : this.#failed("forwarding-denied", "the server refuses to forward it, and has no SFTP to see why");
    return { ...failure, withoutSftp: true };
  }

  #failed(name: FailureClass, reason: string): ConnectionError {
    return new ConnectionError({ class: name, message: `Cannot use ${messageLine(this.#path)}: ${reason}` });
  }
}

/** The absolute path of the remote socket. */
async function expanded(path: string, sftp: SftpSession | undefined): Promise<string> {
  if (!path.startsWith("~/")) return path;
  if (sftp === undefined) {
    const message = `Cannot find ${messageLine(path)}: the server has no SFTP. Give an absolute path`;
    throw new ConnectionError({ class: "socket-folder", message });
  }
  const full = posix.join(await sftp.realpath("."), path.slice(2));
  // The home folder comes from the server.
  if (
    !full.startsWith("/") ||
    INVISIBLE_CHARACTERS.test(full) ||
    full.includes("${") ||
    Buffer.byteLength(full) > MAX_REMOTE_SOCKET_BYTES
  ) {
    const message = `Cannot use ${messageLine(full)}: a socket's path has at most ${MAX_REMOTE_SOCKET_BYTES} bytes`;
    throw new ConnectionError({ class: "socket-folder", message });
  }
  return full;
}
