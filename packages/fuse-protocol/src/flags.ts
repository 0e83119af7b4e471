/** Values of linux/fuse.h and of the system calls behind it. All are bit masks of 32 bits. */

/**
 * Features that are agreed on by INIT. Features that change the layout of a message are not listed, so that every message
 * has one layout.
 */
export const INIT_FLAGS = {
  /** The kernel sends several reads of one file at a time. */
  asyncRead: 1 << 0,
  posixLocks: 1 << 1,
  /** The kernel sends O_TRUNC with OPEN, instead of a SETATTR before it. */
  atomicTruncate: 1 << 3,
  /** A WRITE has more than 4 KiB. */
  bigWrites: 1 << 5,
  /** The server applies the umask. */
  dontMask: 1 << 6,
  flockLocks: 1 << 10,
  /** The kernel drops cached pages when the modification time or the size changes. */
  autoInvalidateData: 1 << 12,
  readdirplus: 1 << 13,
  /** The kernel decides between READDIR and READDIRPLUS. */
  readdirplusAuto: 1 << 14,
  asyncDirectIo: 1 << 15,
  writebackCache: 1 << 16,
  /** A first OPEN that is answered with ENOSYS means that no file needs OPEN. */
  noOpen: 1 << 17,
  /** The kernel sends several LOOKUP and READDIR of one directory at a time. */
  parallelDirectoryOperations: 1 << 18,
  /** The server clears setuid and setgid bits. */
  handleKillpriv: 1 << 19,
  /** A read of the device gives ECONNABORTED, not ENODEV, after an abort through /sys/fs/fuse. */
  abortError: 1 << 21,
  /** INIT's reply holds the maximum number of pages of a message. */
  maxPages: 1 << 22,
  cacheSymlinks: 1 << 23,
  noOpendir: 1 << 24,
  /** The kernel drops cached pages only after a notification. */
  explicitInvalidateData: 1 << 25,
} as const;

/** Flags of the reply to OPEN, OPENDIR and CREATE. */
export const OPEN_REPLY_FLAGS = {
  /** Every read and write reaches the server. */
  directIo: 1 << 0,
  /** Pages that are already cached stay valid. */
  keepCache: 1 << 1,
  nonSeekable: 1 << 2,
  /** The kernel may cache the listing of this directory. */
  cacheDirectory: 1 << 3,
  stream: 1 << 4,
  /** FLUSH is not sent on close. */
  noFlush: 1 << 5,
} as const;

/** Flags of RENAME2 (renameat2(2)). */
export const RENAME_FLAGS = { noReplace: 1 << 0, exchange: 1 << 1, whiteout: 1 << 2 } as const;

/** Flags of SETXATTR (setxattr(2)). */
export const XATTR_FLAGS = { create: 1 << 0, replace: 1 << 1 } as const;

/** Flags of RELEASE. */
export const RELEASE_FLAGS = { flush: 1 << 0, flockUnlock: 1 << 1 } as const;

/** Flags of WRITE. */
export const WRITE_FLAGS = {
  /** The data comes from the page cache. */
  cache: 1 << 0,
  lockOwner: 1 << 1,
  killPrivileges: 1 << 2,
} as const;
