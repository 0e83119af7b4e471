import { AppError } from "@devplat/base";

/**
 * - `key_unknown`: the agent has no such key.
 * - `key_withheld`: the key may not be used for this destination, through these hosts, or for this namespace.
 * - `passphrase_wrong`: the passphrase does not open the key.
 * - `not_confirmed`: the user refused, or nobody answered in time.
 * - `key_unusable`: the store cannot give the key now, or the key is not sound.
 * - `locked`: the agent is locked.
 * - `too_many_tries`: too many passphrases were wrong.
 */
export type AgentRefusalCode =
  | "key_unknown"
  | "key_withheld"
  | "passphrase_wrong"
  | "not_confirmed"
  | "key_unusable"
  | "locked"
  | "too_many_tries";

/** Why the SSH agent does not do what a client asks. The message is for the log and the user; the client gets FAILURE. */
export class AgentRefusal extends AppError<AgentRefusalCode> {}
