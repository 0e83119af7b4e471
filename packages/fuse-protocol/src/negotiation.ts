import { FuseProtocolError } from "./errors.ts";
import { REQUEST_HEADER_BYTES } from "./decode-request.ts";
import { INIT_FLAGS } from "./flags.ts";
import type { FuseRequest } from "./request.ts";

export const FUSE_MAJOR = 7;
/** Minor versions whose layouts this package knows. */
export const MIN_FUSE_MINOR = 31;
export const MAX_FUSE_MINOR = 38;
/** FUSE_MIN_READ_BUFFER. */
const MIN_BUFFER_BYTES = 8192;
/** `struct fuse_write_in`. */
const WRITE_BYTES = 40;
const PAGE_BYTES = 4096;
/** Pages of a message without `maxPages`. */
const DEFAULT_MAX_PAGES = 32;
const ALL_FLAGS = Object.values(INIT_FLAGS).reduce((all, flag) => all | flag, 0);

/** Choices of the server for a connection. */
export interface ConnectionOptions {
  /** Wanted features, see `INIT_FLAGS`. Those that the kernel does not have are left out. */
  readonly flags: number;
  /** Maximum data of one WRITE and one READ, in bytes. Over 128 KiB the kernel must have `maxPages`. */
  readonly maxWriteBytes: number;
  /** Maximum requests in the background, such as read-ahead. Default 12, the kernel's own. */
  readonly maxBackground?: number;
  /** Maximum read-ahead, in bytes. Default: the kernel's own. */
  readonly maxReadahead?: number;
  /** Granularity of times, in nanoseconds. Default 1. */
  readonly timeGranularity?: number;
}

/** Result of INIT. */
export interface Connection {
  readonly minor: number;
  /** Features that both sides have. */
  readonly flags: number;
  readonly maxWriteBytes: number;
  readonly maxPages: number;
  readonly maxBackground: number;
  readonly maxReadahead: number;
  readonly timeGranularity: number;
}

/** Size of a buffer that takes every request, in bytes. */
export function requestBufferBytes(maxWriteBytes: number): number {
  // The data of a WRITE can begin within a page.
  return Math.max(MIN_BUFFER_BYTES, REQUEST_HEADER_BYTES + WRITE_BYTES + maxWriteBytes + PAGE_BYTES);
}

/**
 * Agrees on version and features, which are those that both sides have.
 *
 * @throws FuseProtocolError `unsupported_version`
 */
export function negotiate(
  request: Extract<FuseRequest, { operation: "init" }>,
  options: ConnectionOptions,
): Connection {
  if (request.major !== FUSE_MAJOR || request.minor < MIN_FUSE_MINOR)
    throw new FuseProtocolError(
      "unsupported_version",
      `the kernel speaks FUSE ${request.major}.${request.minor}, and ${FUSE_MAJOR}.${MIN_FUSE_MINOR} or later is needed`,
      request.header.unique,
    );
  const wantedPages = Math.ceil(options.maxWriteBytes / PAGE_BYTES);
  const wanted = wantedPages > DEFAULT_MAX_PAGES ? options.flags | INIT_FLAGS.maxPages : options.flags;
  const flags = (wanted & request.flags & ALL_FLAGS) >>> 0;
  const maxPages =
    (flags & INIT_FLAGS.maxPages) === 0 ? Math.min(wantedPages, DEFAULT_MAX_PAGES) : wantedPages;
  return {
    minor: Math.min(request.minor, MAX_FUSE_MINOR),
    flags,
    maxWriteBytes: Math.min(options.maxWriteBytes, maxPages * PAGE_BYTES),
    maxPages,
    maxBackground: options.maxBackground ?? 12,
    maxReadahead: Math.min(options.maxReadahead ?? request.maxReadahead, request.maxReadahead),
    timeGranularity: options.timeGranularity ?? 1,
  };
}
