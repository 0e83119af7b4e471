export { FUSE_ERROR_CODES, FuseProtocolError, type FuseErrorCode } from "./errors.ts";
export {
  INIT_FLAGS,
  OPEN_REPLY_FLAGS,
  RELEASE_FLAGS,
  RENAME_FLAGS,
  WRITE_FLAGS,
  XATTR_FLAGS,
} from "./flags.ts";
export type {
  AttributeChange,
  FileLock,
  FileName,
  FuseOperation,
  FuseRequest,
  RequestHeader,
  Timestamp,
} from "./request.ts";
export { MAX_NAME_BYTES } from "./request-reader.ts";
export { REQUEST_HEADER_BYTES, decodeRequest } from "./decode-request.ts";
export {
  FUSE_MAJOR,
  MAX_FUSE_MINOR,
  MIN_FUSE_MINOR,
  negotiate,
  requestBufferBytes,
  type Connection,
  type ConnectionOptions,
} from "./negotiation.ts";
export type { Entry, FileAttributes } from "./attributes.ts";
export { REPLY_HEADER_BYTES, ReplyWriter, type FilesystemSize } from "./reply-writer.ts";
export { DirectoryWriter, type DirectoryEntry } from "./directory-writer.ts";
export { encodeDeleted, encodeInvalidEntry, encodeInvalidInode } from "./notification.ts";
