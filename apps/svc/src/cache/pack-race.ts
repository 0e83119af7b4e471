import { systemCode } from "@devplat/base";

/** Exchanges of packs that one look at a store can meet; each takes another process seconds to prepare. */
const MAX_TRIES = 5;

/**
 * Does work that opens packs, again if one of them went while it was being opened: another process merged it into a
 * pack that is there by now.
 *
 * @param work told whether the folder must be looked at anew
 */
export async function despiteReplacement<T>(work: (again: boolean) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work(tries > 1);
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || tries === MAX_TRIES) throw error;
    }
  }
}
