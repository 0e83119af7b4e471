import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates } from "node:tls";
import { systemCode } from "@devplat/base";
import { findProxy } from "@devplat/http-client";
import type { Dispatcher } from "undici";
import { ObjectStoreError } from "./errors.ts";
import type { Traffic } from "./object-store.ts";

export interface ConnectionSettings {
  /** PEM file with certificates that are trusted in addition to the system's. */
  readonly caFile?: string | undefined;
  /** Source of `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. Default: no proxy. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Maximum number of connections for control objects. Default 16. */
  readonly controlConnections?: number;
  /** Maximum number of connections for transfers. Default 32. */
  readonly bulkConnections?: number;
}

/** Milliseconds for a connection to come up. The time limit of a request may be shorter. */
const CONNECT_TIMEOUT_MS = 5000;
/** Milliseconds that an unused connection is kept. Less than servers usually keep theirs, so that none is stale. */
const KEEP_ALIVE_MS = 4000;
const CONTROL_CONNECTIONS = 16;
const BULK_CONNECTIONS = 32;

/** Connections to the store: one pool for control objects and one for transfers. They open with the first request. */
export class S3Connections {
  readonly #origin: string;
  readonly #settings: ConnectionSettings;
  readonly #pools = new Map<Traffic, Promise<Dispatcher>>();

  constructor(origin: string, settings: ConnectionSettings) {
    this.#origin = origin;
    this.#settings = settings;
  }

  /** @throws ObjectStoreError `refused`: the CA file is not usable; HttpClientError `proxy_misconfigured` */
  async pool(traffic: Traffic): Promise<Dispatcher> {
    let pool = this.#pools.get(traffic);
    if (pool === undefined) {
      pool = this.#open(traffic);
      this.#pools.set(traffic, pool);
      // A file that is repaired later is read again.
      pool.catch(() => this.#pools.delete(traffic));
    }
    return await pool;
  }

  async close(): Promise<void> {
    const pools = await Promise.allSettled(this.#pools.values());
    this.#pools.clear();
    await Promise.all(pools.flatMap((each) => (each.status === "fulfilled" ? [each.value.destroy()] : [])));
  }

  async #open(traffic: Traffic): Promise<Dispatcher> {
    const { caFile, environment = {}, controlConnections, bulkConnections } = this.#settings;
    const proxy = await findProxy(this.#origin, environment);
    const { connectionsTo } = await import("@devplat/http-client/connections");
    return connectionsTo(this.#origin, proxy, {
      connections:
        traffic === "control"
          ? (controlConnections ?? CONTROL_CONNECTIONS)
          : (bulkConnections ?? BULK_CONNECTIONS),
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The requests have time limits of their own.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        timeout: CONNECT_TIMEOUT_MS,
        ...(caFile !== undefined && { secureContext: trusting(caFile) }),
      },
    });
  }
}

function trusting(caFile: string): ReturnType<typeof createSecureContext> {
  const refused = (reason: string): ObjectStoreError =>
    new ObjectStoreError(
      "refused",
      `Cannot read the certificates of the object store in ${caFile}: ${reason}`,
    );
  let text: string;
  try {
    text = readFileSync(caFile, "utf8");
  } catch (error) {
    throw refused(systemCode(error) ?? "the file cannot be read");
  }
  if (!text.includes("-----BEGIN CERTIFICATE-----")) throw refused("the file holds no PEM certificate");
  return createSecureContext({ ca: [...getCACertificates("default"), text] });
}
