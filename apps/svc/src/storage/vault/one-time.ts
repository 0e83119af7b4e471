import type { OneTimeRecord, OneTimeStore } from "../store.ts";
import { nameFor, type VaultKv } from "./kv.ts";

/** Stored entry. Null: it was taken, and will be removed. */
type Entry = OneTimeRecord | null;

export function vaultOneTime(kv: VaultKv): OneTimeStore {
  return {
    async put(record, now) {
      const path = pathOf(record.kind, record.key);
      const stored = await kv.read<Entry>(path);
      if (isLive(stored?.value, now)) return false;
      return kv.write(path, record, stored?.version ?? 0);
    },

    async get(kind, key, now) {
      const entry = (await kv.read<Entry>(pathOf(kind, key)))?.value;
      return isLive(entry, now) ? entry : undefined;
    },

    async replace(kind, key, from, to, now) {
      const path = pathOf(kind, key);
      const stored = await kv.read<Entry>(path);
      if (stored === undefined || !isLive(stored.value, now) || stored.value.value !== from) return false;
      return kv.write(path, { ...stored.value, value: to }, stored.version);
    },

    async take(kind, key, now) {
      const path = pathOf(kind, key);
      for (;;) {
        const stored = await kv.read<Entry>(path);
        if (stored === undefined || !isLive(stored.value, now)) return undefined;
        if (await kv.removeVersion(path, stored.version)) return stored.value;
        // It was taken or replaced after it was read. The next read shows which.
      }
    },

    async deleteExpired(now) {
      let deleted = 0;
      for (const kind of await kv.list("one-time")) {
        for (const name of await kv.list(`one-time/${kind.replace(/\/$/, "")}`)) {
          const path = `one-time/${kind}${name}`;
          const stored = await kv.read<Entry>(path);
          if (stored === undefined || isLive(stored.value, now)) continue;
          if (await kv.removeVersion(path, stored.version)) deleted++;
        }
      }
      return deleted;
    },
  };
}

function isLive(entry: Entry | undefined, now: number): entry is OneTimeRecord {
  return entry !== undefined && entry !== null && entry.expiresAt > now;
}

function pathOf(kind: string, key: string): string {
  return `one-time/${nameFor(kind)}/${nameFor(key)}`;
}
