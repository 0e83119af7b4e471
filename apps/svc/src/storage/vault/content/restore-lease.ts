import { randomUUID } from "node:crypto";
import { systemClock } from "@devplat/base";
import { SvcError } from "../../../errors.ts";
import type { Lease, LeaseStore } from "../../coordination-store.ts";
import { vaultLeases } from "../coordination/leases.ts";
import type { VaultKv } from "../kv.ts";

const NAME = "restore";
/** A restore that was ended keeps others from the database for so long. A slow request to Vault must be shorter. */
const LEASE_MS = 15_000;
const RENEW_MS = 5000;

/** Keeps other restores from a database while one runs. */
export class RestoreLease {
  readonly #leases: LeaseStore;
  readonly #lease: Lease;
  #renewedAt = systemClock.monotonic();

  private constructor(leases: LeaseStore, lease: Lease) {
    this.#leases = leases;
    this.#lease = lease;
  }

  /** @throws SvcError `database_in_use`: another restore has it */
  static async acquire(kv: VaultKv): Promise<RestoreLease> {
    const leases = vaultLeases(kv);
    const lease = await leases.acquire(NAME, randomUUID(), LEASE_MS);
    if (lease === undefined)
      throw inUse(`Another restore writes, or was ended less than ${LEASE_MS / 1000} seconds ago.`);
    return new RestoreLease(leases, lease);
  }

  /** Extends the lease if that is due. @throws SvcError `database_in_use`: it ended, and another restore began */
  async keep(): Promise<void> {
    if (systemClock.monotonic() - this.#renewedAt >= RENEW_MS) await this.renew();
  }

  /** Extends the lease. @throws SvcError `database_in_use`: it ended, and another restore began */
  async renew(): Promise<void> {
    if (!(await this.#leases.renew(this.#lease, LEASE_MS)))
      throw inUse("Another restore began. Run it again.");
    this.#renewedAt = systemClock.monotonic();
  }

  async release(): Promise<void> {
    await this.#leases.release(this.#lease);
  }
}

function inUse(hint: string): SvcError {
  return new SvcError("database_in_use", "Cannot restore: another restore uses the database", { hint });
}
