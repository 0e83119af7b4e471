import { ForwardError } from "../errors/forward-error.ts";

/** Messages of SFTP version 3 (draft-ietf-secsh-filexfer-02). Only those that are used. */
export const SFTP = {
  init: 1,
  version: 2,
  lstat: 7,
  remove: 13,
  mkdir: 14,
  realpath: 16,
  status: 101,
  name: 104,
  attributes: 105,
  extended: 200,
  extendedReply: 201,
} as const;

/** Extension of OpenSSH: facts of the file system of a path (OpenSSH's PROTOCOL, 4.4). */
export const STATVFS = "statvfs@openssh.com";

export const SFTP_VERSION = 3;
export const STATUS_OK = 0;
export const STATUS_NO_SUCH_FILE = 2;
/** OpenSSH sends at most 256 KiB; answers to these requests hold one path. In bytes. */
export const MAX_PACKET_BYTES = 64 * 1024;

const HAS_SIZE = 1;
const HAS_OWNER = 2;
const HAS_PERMISSIONS = 4;
const HAS_TIMES = 8;
const TYPE_MASK = 0o170_000;
const TYPE_SOCKET = 0o140_000;
const TYPE_FOLDER = 0o040_000;

/** Facts of a file, as the server tells them. */
export interface FileAttributes {
  /** Undefined where the server does not tell. */
  readonly uid: number | undefined;
  readonly mode: number | undefined;
  /** Time of the last change, seconds since the epoch. */
  readonly modified: number | undefined;
}

export function isSocket({ mode = 0 }: FileAttributes): boolean {
  return (mode & TYPE_MASK) === TYPE_SOCKET;
}

export function isFolder({ mode = 0 }: FileAttributes): boolean {
  return (mode & TYPE_MASK) === TYPE_FOLDER;
}

/** The server's bytes are not SFTP. */
export class PacketError extends ForwardError {
  constructor(reason: string) {
    super("sftp_failed", `SFTP with the remote host failed: ${reason}`);
  }
}

/** A packet with its length before it. @param parts numbers are written as 32 bits */
export function packet(type: number, ...parts: readonly (number | string)[]): Buffer {
  const body = parts.map((part) => {
    if (typeof part === "number") return uint32(part);
    const bytes = Buffer.from(part, "utf8");
    return Buffer.concat([uint32(bytes.length), bytes]);
  });
  const content = Buffer.concat([Buffer.of(type), ...body]);
  return Buffer.concat([uint32(content.length), content]);
}

/** Attributes of a folder to be made: its permissions. */
export function permissions(mode: number): readonly number[] {
  return [HAS_PERMISSIONS, mode];
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Reads the fields of one packet in order. Every method throws {@link PacketError} when there is none. */
export class PacketReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#take(1).readUInt8();
  }

  uint32(): number {
    return this.#take(4).readUInt32BE();
  }

  uint64(): bigint {
    return this.#take(8).readBigUInt64BE();
  }

  /** A path or message; the servers of today write UTF-8. */
  text(): string {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(this.#take(this.uint32()));
    } catch (error) {
      if (error instanceof PacketError) throw error;
      throw new PacketError("a name is not UTF-8 text");
    }
  }

  attributes(): FileAttributes {
    const flags = this.uint32();
    if ((flags & HAS_SIZE) !== 0) this.#take(8);
    const uid = (flags & HAS_OWNER) === 0 ? undefined : this.uint32();
    if (uid !== undefined) this.uint32();
    const mode = (flags & HAS_PERMISSIONS) === 0 ? undefined : this.uint32();
    if ((flags & HAS_TIMES) === 0) return { uid, mode, modified: undefined };
    this.uint32();
    return { uid, mode, modified: this.uint32() };
  }

  #take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new PacketError("a packet is too short");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}

/** Cuts a stream of bytes into packets without their lengths. */
export class PacketSplitter {
  #rest = Buffer.alloc(0);

  /** @returns the packets that are complete now @throws PacketError if one is longer than the limit */
  push(chunk: Buffer): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const packets: Buffer[] = [];
    while (this.#rest.length >= 4) {
      const length = this.#rest.readUInt32BE();
      if (length === 0 || length > MAX_PACKET_BYTES)
        throw new PacketError("a packet has an impossible length");
      if (this.#rest.length < 4 + length) break;
      packets.push(this.#rest.subarray(4, 4 + length));
      this.#rest = this.#rest.subarray(4 + length);
    }
    return packets;
  }
}
