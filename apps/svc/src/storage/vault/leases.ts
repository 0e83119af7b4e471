import type { LeaseStore } from "../store.ts";
import { nameFor, type VaultKv } from "./kv.ts";

interface Lease {
  readonly holder: string;
  readonly expiresAt: number;
}

export class VaultLeases implements LeaseStore {
  readonly #kv: VaultKv;

  constructor(kv: VaultKv) {
    this.#kv = kv;
  }

  async acquire(name: string, holder: string, ttlMs: number, now: number): Promise<boolean> {
    const lease = await this.#kv.change<Lease>(pathOf(name), (present) =>
      present !== undefined && present.holder !== holder && present.expiresAt > now
        ? undefined
        : { holder, expiresAt: now + ttlMs },
    );
    return lease?.holder === holder;
  }

  async release(name: string, holder: string): Promise<void> {
    await this.#kv.change<Lease>(pathOf(name), (present) =>
      present?.holder === holder ? { holder, expiresAt: 0 } : undefined,
    );
  }
}

function pathOf(name: string): string {
  return `leases/${nameFor(name)}`;
}
