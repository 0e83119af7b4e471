import type { ClientConfig } from "pg";
import { BRAND } from "../../brand.ts";
import type { PostgresAddress } from "./dsn.ts";

/** Milliseconds for a connection, TLS and login included. */
export const CONNECT_TIMEOUT_MS = 5000;

/** Settings of every connection to the server. */
export function connectionConfig(address: PostgresAddress): ClientConfig {
  return {
    host: address.host,
    port: address.port,
    user: address.user ?? BRAND.command,
    ...(address.password === undefined ? {} : { password: address.password.reveal() }),
    database: address.database ?? address.user ?? BRAND.command,
    application_name: address.applicationName ?? BRAND.command,
    ...(address.tls === undefined ? { ssl: false } : { ssl: address.tls }),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  };
}
