import { AppError } from "@devplat/base";

/** Every code that this package reports. Callers match on it, never on the message. */
export const SSH_ERROR_CODES = [
  "truncated",
  "trailing_data",
  "too_long",
  "bad_value",
  "bad_text",
  "bad_key",
  "weak_key",
  "unsupported",
  "refused_algorithm",
  "wrong_passphrase",
] as const;

/**
 * - `truncated`: the bytes end inside a value.
 * - `trailing_data`: bytes follow the end of a value.
 * - `too_long`: a message or a number is longer than the limit.
 * - `bad_value`: a field holds a value that its format does not allow.
 * - `bad_text`: text (base64, PEM, a line) does not have its form.
 * - `bad_key`: the numbers of a key do not make a key, or its two halves do not match.
 * - `weak_key`: an RSA key is shorter than the limit.
 * - `unsupported`: a type, algorithm, cipher or version is unknown here.
 * - `refused_algorithm`: the algorithm is known, and refused because it is not secure (RSA with SHA-1).
 * - `wrong_passphrase`: the passphrase does not open the private key.
 */
export type SshErrorCode = (typeof SSH_ERROR_CODES)[number];

/** SSH data that cannot be accepted. The message never quotes the data. */
export class SshProtocolError extends AppError<SshErrorCode> {}
