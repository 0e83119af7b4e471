/** Fields that every request has. */
export interface RequestHeader {
  /** Number that the reply repeats. 0 for requests without a reply. */
  readonly unique: bigint;
  /** Node that the request is about. 1 is the root; 0 for requests about no node. */
  readonly nodeId: bigint;
  /** The caller. All three are 0 when the kernel itself asks. `pid` is also 0 in another PID namespace. */
  readonly uid: number;
  readonly gid: number;
  readonly pid: number;
}

/** A name of one directory entry, 1 to 255 bytes. Both forms are copies. */
export interface FileName {
  readonly bytes: Buffer;
  /** Undefined if the bytes are not UTF-8. */
  readonly text: string | undefined;
}

export interface Timestamp {
  /** After 1970; negative before. */
  readonly seconds: number;
  readonly nanoseconds: number;
}

/** Attributes that SETATTR changes. An undefined one stays. */
export interface AttributeChange {
  readonly mode: number | undefined;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  readonly size: number | undefined;
  readonly accessTime: Timestamp | "now" | undefined;
  readonly modificationTime: Timestamp | "now" | undefined;
  readonly changeTime: Timestamp | undefined;
}

/** A range of bytes of a file (fcntl(2)). `end` is the last byte; `type` is F_RDLCK, F_WRLCK or F_UNLCK. */
export interface FileLock {
  readonly start: bigint;
  readonly end: bigint;
  readonly type: number;
  readonly pid: number;
}

interface Reading {
  readonly handle: bigint;
  /** For a directory: `nextOffset` of the last entry that was read, or 0. */
  readonly offset: number;
  /** Maximum bytes of the reply's data. */
  readonly size: number;
}

type Operation =
  | {
      readonly operation: "init";
      readonly major: number;
      readonly minor: number;
      readonly maxReadahead: number;
      /** Features of the kernel, see `INIT_FLAGS`. */
      readonly flags: number;
    }
  | { readonly operation: "destroy" | "statfs" | "readlink" }
  | { readonly operation: "lookup" | "unlink" | "rmdir"; readonly name: FileName }
  /** The kernel forgets this many lookups of the node. No reply. */
  | { readonly operation: "forget"; readonly lookups: bigint }
  /** No reply. */
  | {
      readonly operation: "batch-forget";
      readonly nodes: readonly { readonly nodeId: bigint; readonly lookups: bigint }[];
    }
  | { readonly operation: "getattr"; readonly handle: bigint | undefined }
  | { readonly operation: "setattr"; readonly change: AttributeChange; readonly handle: bigint | undefined }
  | {
      readonly operation: "mknod";
      readonly name: FileName;
      readonly mode: number;
      readonly device: number;
      readonly umask: number;
    }
  | { readonly operation: "mkdir"; readonly name: FileName; readonly mode: number; readonly umask: number }
  /** RENAME, which has no flags, and RENAME2. See `RENAME_FLAGS`. */
  | {
      readonly operation: "rename";
      readonly name: FileName;
      readonly newParent: bigint;
      readonly newName: FileName;
      readonly flags: number;
    }
  /** A further name in the directory `header.nodeId` for an existing node. */
  | { readonly operation: "link"; readonly existing: bigint; readonly name: FileName }
  /** `target` is a copy, of any bytes but NUL. */
  | { readonly operation: "symlink"; readonly name: FileName; readonly target: Buffer }
  /** `flags` are those of open(2). */
  | { readonly operation: "open" | "opendir"; readonly flags: number }
  | {
      readonly operation: "create";
      readonly name: FileName;
      readonly flags: number;
      readonly mode: number;
      readonly umask: number;
    }
  | ({ readonly operation: "read"; readonly flags: number } & Reading)
  | ({ readonly operation: "readdir" | "readdirplus" } & Reading)
  /** `data` is a view of the request: copy it before the next request is read. `writeFlags`: see `WRITE_FLAGS`. */
  | {
      readonly operation: "write";
      readonly handle: bigint;
      readonly offset: number;
      readonly data: Buffer;
      readonly writeFlags: number;
      readonly flags: number;
    }
  | {
      readonly operation: "release" | "releasedir";
      readonly handle: bigint;
      readonly flags: number;
      readonly releaseFlags: number;
    }
  | { readonly operation: "fsync" | "fsyncdir"; readonly handle: bigint; readonly dataOnly: boolean }
  | { readonly operation: "flush"; readonly handle: bigint; readonly lockOwner: bigint }
  /** `value` is a view of the request: copy it before the next request is read. `flags`: see `XATTR_FLAGS`. */
  | {
      readonly operation: "setxattr";
      readonly name: FileName;
      readonly value: Buffer;
      readonly flags: number;
    }
  /** A size of 0 asks for the length of the value. */
  | { readonly operation: "getxattr"; readonly name: FileName; readonly size: number }
  | { readonly operation: "listxattr"; readonly size: number }
  | { readonly operation: "removexattr"; readonly name: FileName }
  | { readonly operation: "access"; readonly mask: number }
  /** The caller of another request was interrupted: answer that one with EINTR. No reply. */
  | { readonly operation: "interrupt"; readonly target: bigint }
  | {
      readonly operation: "fallocate";
      readonly handle: bigint;
      readonly offset: number;
      readonly length: number;
      readonly mode: number;
    }
  | {
      readonly operation: "lseek";
      readonly handle: bigint;
      readonly offset: number;
      readonly whence: number;
    }
  | {
      readonly operation: "copy-file-range";
      readonly handle: bigint;
      readonly offset: number;
      readonly targetNodeId: bigint;
      readonly targetHandle: bigint;
      readonly targetOffset: number;
      readonly length: number;
    }
  | {
      readonly operation: "poll";
      readonly handle: bigint;
      readonly kernelHandle: bigint;
      readonly flags: number;
      readonly events: number;
    }
  /** `data` is a view of the request. */
  | {
      readonly operation: "ioctl";
      readonly handle: bigint;
      readonly flags: number;
      readonly command: number;
      readonly argument: bigint;
      readonly data: Buffer;
      readonly outSize: number;
    }
  | {
      readonly operation: "getlk" | "setlk" | "setlkw";
      readonly handle: bigint;
      readonly owner: bigint;
      readonly lock: FileLock;
      readonly flock: boolean;
    }
  /** Answered with ENOSYS. */
  | { readonly operation: "unknown"; readonly opcode: number };

/**
 * A request of the kernel. File handles are numbers that the server has chosen in its reply to OPEN, OPENDIR or CREATE.
 * Offsets and sizes are exact up to 2^53; larger ones are rounded, and are beyond the end of every file.
 */
export type FuseRequest = { readonly header: RequestHeader } & Operation;

/** Names of all operations. */
export type FuseOperation = FuseRequest["operation"];
