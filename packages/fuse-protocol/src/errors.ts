import { AppError } from "@devplat/base";
import { constants } from "node:os";

/** Every code that this package reports. Callers match on it, never on the message. */
export const FUSE_ERROR_CODES = [
  "truncated",
  "length_mismatch",
  "trailing_data",
  "bad_name",
  "name_too_long",
  "unsupported_version",
] as const;

/**
 * - `truncated`: the bytes end inside a value.
 * - `length_mismatch`: the length in the header is not the number of bytes.
 * - `trailing_data`: bytes follow the last value.
 * - `bad_name`: a name is empty, `.`, `..`, or contains `/`.
 * - `name_too_long`: a name has more than 255 bytes.
 * - `unsupported_version`: the kernel speaks another major version, or a minor version below 31.
 */
export type FuseErrorCode = (typeof FUSE_ERROR_CODES)[number];

/** A request that cannot be accepted. The message never quotes the data. */
export class FuseProtocolError extends AppError<FuseErrorCode> {
  /** Number of the request to answer with {@link errno}. Undefined if it is unknown, or the request gets no reply. */
  readonly unique: bigint | undefined;

  constructor(code: FuseErrorCode, message: string, unique?: bigint) {
    super(code, message);
    this.unique = unique;
  }

  /** Positive number of the error for the reply. */
  get errno(): number {
    if (this.code === "name_too_long") return constants.errno.ENAMETOOLONG;
    return this.code === "unsupported_version" ? constants.errno.EPROTO : constants.errno.EINVAL;
  }
}
