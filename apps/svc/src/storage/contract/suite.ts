import { afterEach, beforeEach, describe, it } from "node:test";
import type { Store } from "../store.ts";
import { accountCases } from "./accounts.ts";
import { appCases } from "./apps.ts";
import { auditCases } from "./audit.ts";
import { cachedRepositoryCases } from "./cached-repositories.ts";
import { epochCases } from "./epochs.ts";
import { instanceCases } from "./instances.ts";
import { leaseCases } from "./leases.ts";
import { manifestPointerCases } from "./manifest-pointers.ts";
import { sharedFetchCases } from "./shared-fetches.ts";
import { sharedCases } from "./shared.ts";
import { tokenCases } from "./tokens.ts";

/** Suite that every implementation of the store contract passes. `open` gives an empty store each time. */
export function storeContract(name: string, open: () => Promise<Store>): void {
  describe(`store contract: ${name}`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(async () => store.close());
    const current = (): Store => store;

    cachedRepositoryCases(current);
    accountCases(current);
    tokenCases(current);
    appCases(current);
    sharedCases(current);
    auditCases(current);
    leaseCases(current);
    epochCases(current);
    instanceCases(current);
    sharedFetchCases(current);
    manifestPointerCases(current);

    it("answers a ping", async () => store.ping());
  });
}
