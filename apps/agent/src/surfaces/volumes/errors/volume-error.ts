import { AppError } from "@devplat/base";

/**
 * - `request_invalid`: the request does not follow the protocol.
 * - `name_invalid`: the volume's name does not follow Docker's pattern.
 * - `option_invalid`: an option is unknown or has a wrong value.
 * - `volume_unknown`: there is no such volume.
 * - `volume_exists`: there is one with other options.
 * - `volume_in_use`: a container still has it.
 * - `path_refused`: `docker.paths` does not name the folder of the secret.
 * - `not_signed_in`: there is no token for the secrets store.
 * - `secret_unreadable`: a secret cannot be read, or does not exist.
 * - `content_unwritable`: the volume's files cannot be written or removed.
 */
export type VolumeErrorCode =
  | "request_invalid"
  | "name_invalid"
  | "option_invalid"
  | "volume_unknown"
  | "volume_exists"
  | "volume_in_use"
  | "path_refused"
  | "not_signed_in"
  | "secret_unreadable"
  | "content_unwritable";

/** Reason why a call of the plugin failed. The engine shows its message to the user. */
export class VolumeError extends AppError<VolumeErrorCode> {}
