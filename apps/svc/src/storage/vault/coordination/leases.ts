import type { LeaseStore } from "../../coordination-store.ts";
import { nextNumber } from "./growing-number.ts";
import { nameFor, type Stored, type VaultKv } from "../kv.ts";

interface LeaseDocument {
  /** Empty: it was released. */
  readonly holder: string;
  /** By the clock of the instance. Instances of earlier versions read it. */
  readonly expiresAt: number;
  /** From the time when the document was written. Undefined: written by an earlier version. */
  readonly ttlMs?: number;
  readonly fence?: number;
}

const FOLDER = "leases";

export function vaultLeases(kv: VaultKv): LeaseStore {
  /** Changes the lease if it is still that one. */
  const changeOwn = async (
    { name, holder, fence }: { name: string; holder: string; fence: number },
    next: LeaseDocument,
  ): Promise<boolean> => {
    let isOwn = false;
    await kv.change<LeaseDocument>(pathOf(name), (present) => {
      isOwn = present?.holder === holder && present.fence === fence;
      return isOwn ? next : undefined;
    });
    return isOwn;
  };
  return {
    async acquire(name, holder, ttlMs) {
      const now = await kv.now();
      let fence: number | undefined;
      await kv.change<LeaseDocument>(pathOf(name), (present, stored) => {
        fence = undefined;
        const isOwn = present?.holder === holder && present.fence !== undefined;
        if (!isOwn && stored !== undefined && !hasEnded(stored, now)) return undefined;
        fence = isOwn ? present.fence : nextNumber(present?.fence ?? 0, now);
        return document(holder, ttlMs, fence);
      });
      return fence === undefined ? undefined : { name, holder, fence };
    },

    async renew(lease, ttlMs) {
      return changeOwn(lease, document(lease.holder, ttlMs, lease.fence));
    },

    async release(lease) {
      await changeOwn(lease, document("", 0, lease.fence));
    },

    async deleteEnded(olderThanMs) {
      const before = (await kv.now()) - olderThanMs;
      let deleted = 0;
      for (const name of await kv.list(FOLDER)) {
        const path = `${FOLDER}/${name}`;
        const stored = await kv.read<LeaseDocument | null>(path);
        if (stored === undefined || !hasEnded(stored, before)) continue;
        // The next number must be higher.
        if ((stored.value?.fence ?? 0) >= before) continue;
        if (await kv.removeVersion(path, stored.version)) deleted++;
      }
      return deleted;
    },
  };
}

function document(holder: string, ttlMs: number, fence: number | undefined): LeaseDocument {
  return {
    holder,
    expiresAt: ttlMs === 0 ? 0 : Date.now() + ttlMs,
    ttlMs,
    ...(fence === undefined ? {} : { fence }),
  };
}

function hasEnded({ value, writtenAt }: Stored<LeaseDocument | null>, now: number): boolean {
  // Null: it is being deleted.
  if (value === null) return true;
  return (value.ttlMs === undefined ? value.expiresAt : writtenAt + value.ttlMs) <= now;
}

function pathOf(name: string): string {
  return `${FOLDER}/${nameFor(name)}`;
}
