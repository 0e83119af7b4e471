import { statfs } from "node:fs/promises";
import { within, type Clock } from "@devplat/base";
import type { BucketReport } from "./cache/object-tier/bucket/bucket-report.ts";
import type { InstanceDifferences } from "./coordination/instance-registry.ts";
import type { Activity } from "./telemetry/activity.ts";

/** Milliseconds that the database has to respond: a user waits for a page. */
const PING_MS = 2000;
/** Bytes of free space below which the health page warns about the cache's folder. */
export const LITTLE_SPACE = 5 * 1024 ** 3;
/** Milliseconds before the end of a certificate when the warnings begin. */
export const CERTIFICATE_SOON_MS = 14 * 24 * 60 * 60 * 1000;

/** One thing that the service depends on. */
export interface HealthItem {
  readonly name: string;
  readonly state: "good" | "warn" | "bad" | "idle";
  readonly detail: string;
}

export interface HealthOptions {
  readonly activity: Activity;
  /** Rejects while the database does not respond. */
  readonly ping: () => Promise<void>;
  /** Undefined: the cache is off. */
  readonly cacheFolder: string | undefined;
  /** Undefined: no bucket is configured. */
  readonly bucket: Pick<BucketReport, "look"> | undefined;
  readonly differences: () => InstanceDifferences;
  /** End of the certificate that expires first; undefined: this service has no TLS listener. */
  readonly certificateEnd: () => Date | undefined;
  /** Its host name, with the port. */
  readonly codeHost: string;
  readonly clock: Clock;
}

/** Short health report of the running service. `svc doctor` checks more. */
export class Health {
  readonly #options: HealthOptions;
  /** Ping of the database that has not ended yet. */
  #running: Promise<boolean> | undefined;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async look(): Promise<readonly HealthItem[]> {
    const certificate = this.#certificate();
    return [
      await this.#database(),
      this.#codeHost(),
      await this.#cache(),
      ...this.#bucket(),
      ...this.#instances(),
      ...(certificate === undefined ? [] : [certificate]),
    ];
  }

  /** Whether the database responds in time. Never rejects. @param ms maximum time to wait */
  async databaseAnswers(ms = PING_MS): Promise<boolean> {
    // One at a time, so that probes of a database that hangs do not take all of its connections.
    return (await within((this.#running ??= this.#ping()), ms)) === true;
  }

  async #ping(): Promise<boolean> {
    try {
      await this.#options.ping();
      return true;
    } catch {
      return false;
    } finally {
      this.#running = undefined;
    }
  }

  async #database(): Promise<HealthItem> {
    return (await this.databaseAnswers())
      ? { name: "Database", state: "good", detail: "answers" }
      : { name: "Database", state: "bad", detail: "does not answer" };
  }

  #codeHost(): HealthItem {
    const { activity, codeHost } = this.#options;
    const name = `Code host ${codeHost}`;
    const { codeHost: last } = activity.snapshot();
    if (last === undefined) return { name, state: "idle", detail: "not asked yet" };
    if (last.status === 0) return { name, state: "bad", detail: "did not answer the last request" };
    return last.status >= 500
      ? { name, state: "warn", detail: `answered the last request with ${last.status}` }
      : { name, state: "good", detail: "answers" };
  }

  async #cache(): Promise<HealthItem> {
    const { cacheFolder } = this.#options;
    const name = "Cache";
    if (cacheFolder === undefined) return { name, state: "warn", detail: "off: everything passes through" };
    try {
      const { bavail, bsize } = await statfs(cacheFolder);
      const free = bavail * bsize;
      const detail = `${Math.floor(free / 1024 ** 3)} GiB free on its disk`;
      return { name, state: free < LITTLE_SPACE ? "warn" : "good", detail };
    } catch {
      return { name, state: "bad", detail: "its folder cannot be read" };
    }
  }

  /** Lines for `/readyz` about parts that do not work, although the service is ready. */
  notes(): readonly string[] {
    const notes = this.#options.bucket?.look().notes ?? [];
    const different = this.#different();
    return different === undefined ? notes : [...notes, `instances: ${different}`];
  }

  #bucket(): readonly HealthItem[] {
    const { bucket } = this.#options;
    if (bucket === undefined) return [];
    const { state, detail } = bucket.look();
    return [{ name: "Bucket", state, detail }];
  }

  /** Only if there is something to say. The instances have a list of their own. */
  #instances(): readonly HealthItem[] {
    const different = this.#different();
    if (different === undefined) return [];
    const { keyIds } = this.#options.differences();
    const theirs = keyIds.length === 0 ? "" : ` (their keys: ${keyIds.join(", ")})`;
    return [{ name: "Other instances", state: "warn", detail: different + theirs }];
  }

  /** Undefined: all instances share their data. */
  #different(): string | undefined {
    const { settings } = this.#options.differences();
    if (settings.length === 0) return undefined;
    return `others on this database have another ${settings.join(", ")}: set the same on all of them`;
  }

  #certificate(): HealthItem | undefined {
    const end = this.#options.certificateEnd();
    if (end === undefined) return undefined;
    const left = end.getTime() - this.#options.clock.now();
    const state = left <= 0 ? "bad" : left < CERTIFICATE_SOON_MS ? "warn" : "good";
    return { name: "Certificate", state, detail: `until ${end.toISOString().slice(0, 10)}` };
  }
}
