import type { OneTimeRecord, OneTimeStore } from "../store.ts";
import { nameFor, type VaultKv } from "./kv.ts";

/** What is stored; null: it was taken, and is about to be removed. */
type Entry = OneTimeRecord | null;

export class VaultOneTime implements OneTimeStore {
  readonly #kv: VaultKv;

  constructor(kv: VaultKv) {
    this.#kv = kv;
  }

  async put(record: OneTimeRecord, now: number): Promise<boolean> {
    const path = pathOf(record.kind, record.key);
    const stored = await this.#kv.read<Entry>(path);
    if (isLive(stored?.value, now)) return false;
    return this.#kv.write(path, record, stored?.version ?? 0);
  }

  async get(kind: string, key: string, now: number): Promise<OneTimeRecord | undefined> {
    const entry = (await this.#kv.read<Entry>(pathOf(kind, key)))?.value;
    return isLive(entry, now) ? entry : undefined;
  }

  async replace(kind: string, key: string, from: string, to: string, now: number): Promise<boolean> {
    const path = pathOf(kind, key);
    const stored = await this.#kv.read<Entry>(path);
    if (stored === undefined || !isLive(stored.value, now) || stored.value.value !== from) return false;
    return this.#kv.write(path, { ...stored.value, value: to }, stored.version);
  }

  async take(kind: string, key: string, now: number): Promise<OneTimeRecord | undefined> {
    const path = pathOf(kind, key);
    for (;;) {
      const stored = await this.#kv.read<Entry>(path);
      if (stored === undefined || !isLive(stored.value, now)) return undefined;
      if (await this.#kv.removeVersion(path, stored.version)) return stored.value;
      // Taken or replaced meanwhile: the next look says which.
    }
  }

  async deleteExpired(now: number): Promise<number> {
    let deleted = 0;
    for (const kind of await this.#kv.list("one-time")) {
      for (const name of await this.#kv.list(`one-time/${kind.replace(/\/$/, "")}`)) {
        const path = `one-time/${kind}${name}`;
        const stored = await this.#kv.read<Entry>(path);
        if (stored === undefined || isLive(stored.value, now)) continue;
        if (await this.#kv.removeVersion(path, stored.version)) deleted++;
      }
    }
    return deleted;
  }
}

function isLive(entry: Entry | undefined, now: number): entry is OneTimeRecord {
  return entry !== undefined && entry !== null && entry.expiresAt > now;
}

function pathOf(kind: string, key: string): string {
  return `one-time/${nameFor(kind)}/${nameFor(key)}`;
}
