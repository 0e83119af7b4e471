import { AppError } from "@devplat/base";

/**
 * Every error of the service that a user or another part is meant to see:
 * - `config_refused`: the configuration is well-formed, but the service must not start with it.
 * - `database_unavailable`: the database cannot be opened or asked.
 * - `database_behind`: it lacks migrations that this program needs; `svc migrate` applies them.
 * - `database_ahead`: a newer program migrated it.
 * - `encryption_key`: the key is missing, or stored secrets were encrypted with another one.
 * - `already_exists`: a record with the same natural key is there.
 * - `listen_failed`: an address cannot be bound.
 * - `server_unreachable`: the command line got no answer from the server.
 * - `server_refused`: the server answered the command line with an error.
 * - `usage`: the command line was used wrongly.
 */
export type SvcErrorCode =
  | "config_refused"
  | "database_unavailable"
  | "database_behind"
  | "database_ahead"
  | "encryption_key"
  | "already_exists"
  | "listen_failed"
  | "server_unreachable"
  | "server_refused"
  | "usage";

export class SvcError extends AppError<SvcErrorCode> {}
