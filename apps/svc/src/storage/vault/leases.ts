import type { LeaseStore } from "../store.ts";
import { nameFor, type VaultKv } from "./kv.ts";

interface Lease {
  readonly holder: string;
  readonly expiresAt: number;
}

export function vaultLeases(kv: VaultKv): LeaseStore {
  return {
    async acquire(name, holder, ttlMs, now) {
      const lease = await kv.change<Lease>(pathOf(name), (present) =>
        present !== undefined && present.holder !== holder && present.expiresAt > now
          ? undefined
          : { holder, expiresAt: now + ttlMs },
      );
      return lease?.holder === holder;
    },

    async release(name, holder) {
      await kv.change<Lease>(pathOf(name), (present) =>
        present?.holder === holder ? { holder, expiresAt: 0 } : undefined,
      );
    },
  };
}

function pathOf(name: string): string {
  return `leases/${nameFor(name)}`;
}
