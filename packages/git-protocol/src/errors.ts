/** Every error code of this package. Callers match on the code, never on the message. */
export const PROTOCOL_ERROR_CODES = [
  "bad_length",
  "oversized",
  "truncated",
  "unexpected_packet",
  "bad_command",
  "bad_line",
  "too_many_commands",
  "remote_error",
  "bad_side_band",
  "trailing_data",
] as const;

/**
 * - `bad_length`: a pkt-line's length is not four hexadecimal digits, or is 3.
 * - `oversized`: a pkt-line is longer than the protocol allows.
 * - `truncated`: the bytes end inside a message.
 * - `unexpected_packet`: a flush, delim or response-end packet is in a wrong place.
 * - `bad_command`: a request names no command, or two.
 * - `bad_line`: a line does not have the form required in its place.
 * - `too_many_commands`: a body holds more requests than allowed.
 * - `remote_error`: the peer reported an error in band (`ERR`, or side-band 3).
 * - `bad_side_band`: a packet has no side-band byte, or an unknown one.
 * - `trailing_data`: bytes follow the end of the message.
 */
export type ProtocolErrorCode = (typeof PROTOCOL_ERROR_CODES)[number];

/** Error for a message of git's wire protocol that is not valid. The text never quotes the peer's bytes. */
export class ProtocolError extends Error {
  readonly code: ProtocolErrorCode;
  /** Position of the error in the decoded message, in bytes, if known. */
  readonly offset: number | undefined;

  constructor(code: ProtocolErrorCode, message: string, offset?: number) {
    super(message);
    this.name = "ProtocolError";
    this.code = code;
    this.offset = offset;
  }
}
