import type { Store } from "../storage/store.ts";
import { wrapMethods } from "../storage/wrapped.ts";

/**
 * A store that tells when the database has responded.
 *
 * @param responded called after each method that succeeded
 */
export function reportingStore(store: Store, responded: () => void): Store {
  const around = async (run: () => Promise<unknown>): Promise<unknown> => {
    const result = await run();
    responded();
    return result;
  };
  const parts = Object.entries(store).map(([name, member]: [string, unknown]) => [
    name,
    typeof member === "object" && member !== null ? wrapMethods(member, around) : member,
  ]);
  const reporting = Object.fromEntries(parts) as Store;
  return { ...reporting, ping: async () => void (await around(async () => store.ping())) };
}
