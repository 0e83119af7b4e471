import { TokenBucket } from "@devplat/base/token-bucket";
import type { Clock, Secret } from "@devplat/base";
import { AgentRefusal } from "../agent-refusal.ts";

/** Wrong passphrases that may follow each other closely. */
const BURST = 5;
/** Time after which so many may follow again, in milliseconds. */
const REFILL_MS = 60_000;

type Unlock = (name: string, passphrase: Secret) => Promise<void>;

/** Limits wrong passphrases, for all keys together. @returns throws AgentRefusal `too_many_tries` in addition */
export function limitUnlocking(unlock: Unlock, clock: Pick<Clock, "monotonic">): Unlock {
  const tries = new TokenBucket({ capacity: BURST, refillMs: REFILL_MS, clock });
  return async (name, passphrase) => {
    const seconds = tries.take("");
    if (seconds > 0) {
      throw new AgentRefusal("too_many_tries", "too many passphrases were wrong", {
        hint: `Try again in ${seconds} s.`,
      });
    }
    let isWrong = false;
    try {
      await unlock(name, passphrase);
    } catch (error) {
      isWrong = error instanceof AgentRefusal && error.code === "passphrase_wrong";
      throw error;
    } finally {
      if (!isWrong) tries.giveBack("");
    }
  };
}
