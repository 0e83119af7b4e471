import { backoffMs, systemClock, type Secret } from "@devplat/base";
import { Client } from "pg";
import { BRAND } from "../../brand.ts";
import { connectionConfig } from "./connection-config.ts";
import { parsePostgresDsn } from "./dsn.ts";

/** Channel of NOTIFY for changes that instances must learn about. */
export const CHANGES_CHANNEL = `${BRAND.command}_changes`;

/** Milliseconds between two checks whether the connection still works. A dead one is otherwise found only by its next use. */
const CHECK_MS = 15_000;
/** Milliseconds that the server gets for its response to a statement. */
const RESPONSE_MS = 5000;
/** Milliseconds between two tries to connect. */
const BACKOFF = { firstMs: 250, maxMs: 15_000 };

/**
 * Listens for changes on a connection of its own until the signal fires. A connection that breaks is opened again. Reports
 * a change after each connection too, because notifications may have been missed before it. Never rejects.
 */
export async function listenToPostgres(
  dsn: Secret,
  onChange: () => void,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const listened = await listenOnce(dsn, onChange, signal).catch(() => false);
    failures = listened ? 1 : failures + 1;
    await systemClock.sleep(backoffMs(failures, BACKOFF), signal).catch(() => undefined);
  }
}

/** @returns true after a connection that worked has ended @throws if there is no connection */
async function listenOnce(dsn: Secret, onChange: () => void, signal: AbortSignal): Promise<boolean> {
  const client = new Client({ ...connectionConfig(parsePostgresDsn(dsn)), query_timeout: RESPONSE_MS });
  const broken = new AbortController();
  const end = (): void => broken.abort();
  // Without a listener an error would end the process.
  client.on("error", end);
  client.on("end", end);
  const stopped = AbortSignal.any([signal, broken.signal]);
  try {
    await client.connect();
    client.on("notification", onChange);
    await client.query(`LISTEN ${CHANGES_CHANNEL}`);
    onChange();
    while (!stopped.aborted) {
      await systemClock.sleep(CHECK_MS, stopped).catch(() => undefined);
      if (!stopped.aborted) await client.query("SELECT 1");
    }
    return true;
  } finally {
    // The server may be gone, so its response to the end is not waited for.
    client.end().catch(() => undefined);
  }
}
