import { messageOf } from "@devplat/base";
import { visible } from "@devplat/base/terminal";
import type { ChildProcess } from "node:child_process";
import { ForwardError } from "../errors/forward-error.ts";
import type { DiskFault } from "../openssh/failure.ts";
import {
  packet,
  PacketError,
  PacketReader,
  PacketSplitter,
  permissions,
  SFTP,
  SFTP_VERSION,
  STATVFS,
  STATUS_NO_SUCH_FILE,
  STATUS_OK,
  type FileAttributes,
} from "./packets.ts";

/** One answer of the server, in milliseconds. */
const ANSWER_TIMEOUT_MS = 10_000;

/** The server's refusal of one request; the session goes on. */
export class SftpRefusal extends ForwardError {
  readonly status: number;

  constructor(action: string, status: number, message: string) {
    super("sftp_failed", `Cannot ${action} on the remote host: ${visible(message)}`);
    this.status = status;
  }
}

/** `SSH_FXE_STATVFS_ST_RDONLY` */
const READ_ONLY = 1n;

interface Answer {
  readonly type: number;
  readonly reader: PacketReader;
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** A few file operations on the remote host. One request at a time; every answer is limited in size and time. */
export class SftpSession {
  readonly #child: ChildProcess;
  readonly #splitter = new PacketSplitter();
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;
  #fault: ForwardError | undefined;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on("data", (chunk: Buffer) => this.#receive(chunk));
    child.stdin?.on("error", () => undefined);
    child.stderr?.resume();
    child.on("error", (error) => this.#fail(`ssh cannot be started: ${messageOf(error)}`));
    child.on("close", () => this.#fail("the server has no SFTP, or has ended it"));
  }

  /** @param child speaks SFTP on its standard input and output @throws ForwardError `sftp_failed` */
  static async open(child: ChildProcess): Promise<SftpSession> {
    const session = new SftpSession(child);
    try {
      // The first answer has a version in place of an id.
      const { type } = await session.#send(packet(SFTP.init, SFTP_VERSION), SFTP_VERSION);
      if (type !== SFTP.version) throw failed("the server does not speak SFTP version 3");
      return session;
    } catch (error) {
      session.close();
      throw error;
    }
  }

  /** The absolute path, without links; `.` is the home folder. */
  async realpath(path: string): Promise<string> {
    const { type, reader } = await this.#request(SFTP.realpath, path);
    if (type === SFTP.name && reader.uint32() === 1) return reader.text();
    throw refusal(`find ${path}`, type, reader);
  }

  /** Facts of a file, of the link itself if it is one; undefined if there is none. */
  async lstat(path: string): Promise<FileAttributes | undefined> {
    const { type, reader } = await this.#request(SFTP.lstat, path);
    if (type === SFTP.attributes) return reader.attributes();
    const error = refusal(`look at ${path}`, type, reader);
    if (error instanceof SftpRefusal && error.status === STATUS_NO_SUCH_FILE) return undefined;
    throw error;
  }

  /** Why the file system of a path takes no file; undefined if it takes one, or where the server does not tell. */
  async diskFault(path: string): Promise<DiskFault | undefined> {
    const { type, reader } = await this.#request(SFTP.extended, STATVFS, path);
    if (type !== SFTP.extendedReply) return undefined;
    const fields = Array.from({ length: 11 }, () => reader.uint64());
    const [, , blocks, , freeBlocks, files, , freeFiles, , flags = 0n] = fields;
    // A file system without a limit tells 0 of 0.
    const isFull = (blocks !== 0n && freeBlocks === 0n) || (files !== 0n && freeFiles === 0n);
    if ((flags & READ_ONLY) !== 0n) return "read-only";
    return isFull ? "full" : undefined;
  }

  async mkdir(path: string, mode: number): Promise<void> {
    await this.#expectOk(`make the folder ${path}`, SFTP.mkdir, path, ...permissions(mode));
  }

  async remove(path: string): Promise<void> {
    await this.#expectOk(`remove ${path}`, SFTP.remove, path);
  }

  close(): void {
    this.#child.stdin?.end();
    this.#child.kill("SIGTERM");
  }

  async #expectOk(action: string, type: number, ...parts: readonly (number | string)[]): Promise<void> {
    const answer = await this.#request(type, ...parts);
    const status = answer.type === SFTP.status ? answer.reader.uint32() : undefined;
    if (status === STATUS_OK) return;
    throw refused(action, status, answer.reader);
  }

  #request(type: number, ...parts: readonly (number | string)[]): Promise<Answer> {
    const id = this.#nextId++;
    return this.#send(packet(type, id, ...parts), id);
  }

  async #send(bytes: Buffer, id: number): Promise<Answer> {
    if (this.#fault !== undefined) throw this.#fault;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#waiting.set(id, { resolve, reject });
    const timer = setTimeout(() => this.#fail("the server does not answer"), ANSWER_TIMEOUT_MS);
    this.#child.stdin?.write(bytes);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #receive(chunk: Buffer): void {
    try {
      for (const each of this.#splitter.push(chunk)) {
        const reader = new PacketReader(each);
        const type = reader.byte();
        const id = reader.uint32();
        const waiting = this.#waiting.get(id);
        // Nothing else was asked for: the server is broken, or wants something of us.
        if (waiting === undefined) throw new PacketError("an answer belongs to no request");
        this.#waiting.delete(id);
        waiting.resolve({ type, reader });
      }
    } catch (error) {
      this.#end(error instanceof ForwardError ? error : failed(messageOf(error)));
    }
  }

  #fail(reason: string): void {
    this.#end(failed(reason));
  }

  #end(fault: ForwardError): void {
    if (this.#fault !== undefined) return;
    this.#fault = fault;
    for (const { reject } of this.#waiting.values()) reject(this.#fault);
    this.#waiting.clear();
    this.#child.stdout?.removeAllListeners("data").resume();
    this.close();
  }
}

function refusal(action: string, type: number, reader: PacketReader): ForwardError {
  return refused(action, type === SFTP.status ? reader.uint32() : undefined, reader);
}

/** @param status undefined: the answer is not a status */
function refused(action: string, status: number | undefined, reader: PacketReader): ForwardError {
  if (status === undefined || status === STATUS_OK)
    return failed("the server's answer does not fit the request");
  return new SftpRefusal(action, status, messageIn(reader));
}

function messageIn(reader: PacketReader): string {
  try {
    return reader.text();
  } catch {
    return "no reason given";
  }
}

function failed(reason: string): ForwardError {
  return new ForwardError("sftp_failed", `SFTP with the remote host failed: ${reason}`);
}
