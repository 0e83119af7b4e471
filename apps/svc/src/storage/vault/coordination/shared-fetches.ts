import type { SharedFetchRecord, SharedFetchState, SharedFetchStore } from "../../coordination-store.ts";
import { nextNumber } from "./growing-number.ts";
import { nameFor, type Stored, type VaultKv } from "../kv.ts";

interface FetchDocument {
  readonly key: string;
  readonly holder: string;
  readonly fence: number;
  readonly state: SharedFetchState;
  readonly bytes: number;
  readonly expectedBytes: number | undefined;
  readonly isAwaited: boolean;
  /** By the clock of Vault. */
  readonly startedAt: number;
  readonly expiresAt: number;
}

const FOLDER = "shared-fetches";

export function vaultSharedFetches(kv: VaultKv): SharedFetchStore {
  /** Changes the record of a fetch that has not ended, if it is that fetch. */
  const changeRunning = async (
    key: string,
    fence: number,
    change: (fetch: FetchDocument) => Partial<FetchDocument>,
  ): Promise<FetchDocument | undefined> => {
    let isRunning = false;
    const changed = await kv.change<FetchDocument>(pathOf(key), (present) => {
      isRunning = present?.fence === fence && ["fetching", "uploading"].includes(present.state);
      return isRunning && present !== undefined ? { ...present, ...change(present) } : undefined;
    });
    return isRunning ? changed : undefined;
  };
  return {
    async begin(key, holder, ttlMs, insteadOf) {
      const now = await kv.now();
      let fence: number | undefined;
      const stored = await kv.change<FetchDocument>(pathOf(key), (present) => {
        fence = undefined;
        const isMissing = present?.state === "shared" && present.fence === insteadOf;
        // Null: it is being deleted.
        if (present && present.expiresAt > now && !isMissing) return undefined;
        fence = nextNumber(present?.fence ?? 0, now);
        return {
          key,
          holder,
          fence,
          state: "fetching",
          bytes: 0,
          expectedBytes: undefined,
          isAwaited: false,
          startedAt: now,
          expiresAt: now + ttlMs,
        };
      });
      if (fence !== undefined || stored === undefined) return { kind: "begun", fence: fence ?? 0 };
      return { kind: "other", fetch: recordOf(stored, now) };
    },

    async progress(key, fence, { state, bytes, expectedBytes }, ttlMs) {
      const now = await kv.now();
      const change = { state, bytes, expectedBytes, expiresAt: now + ttlMs };
      const changed = await changeRunning(key, fence, () => change);
      return changed && { isAwaited: changed.isAwaited };
    },

    async end(key, fence, state, keepMs) {
      const now = await kv.now();
      await changeRunning(key, fence, () => ({ state, expiresAt: now + keepMs }));
    },

    async find(key) {
      const stored = await kv.read<FetchDocument | null>(pathOf(key));
      return stored?.value ? recordOf(stored.value, await kv.now()) : undefined;
    },

    async markAwaited(key, fence) {
      await changeRunning(key, fence, () => ({ isAwaited: true }));
    },

    async deleteEnded(olderThanMs) {
      const before = (await kv.now()) - olderThanMs;
      let deleted = 0;
      for (const name of await kv.list(FOLDER)) {
        const path = `${FOLDER}/${name}`;
        const stored: Stored<FetchDocument | null> | undefined = await kv.read(path);
        if (stored === undefined || (stored.value !== null && stored.value.expiresAt > before)) continue;
        if (await kv.removeVersion(path, stored.version)) deleted++;
      }
      return deleted;
    },
  };
}

function recordOf(fetch: FetchDocument, now: number): SharedFetchRecord {
  const { key, holder, fence, state, bytes, expectedBytes, startedAt, expiresAt } = fetch;
  const remainingMs = expiresAt - now;
  return { key, holder, fence, state, bytes, expectedBytes, elapsedMs: now - startedAt, remainingMs };
}

function pathOf(key: string): string {
  return `${FOLDER}/${nameFor(key)}`;
}
