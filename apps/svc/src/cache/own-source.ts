import { GitStoreError } from "@devplat/git-store";
import { ProofFailure } from "./proof-thread.ts";

/** An answer whose first chunk is made: what can go wrong by the request or by a missing object did not. */
export interface BegunAnswer {
  readonly chunks: AsyncIterable<Buffer>;
}

/**
 * Asks for the first chunk now, so that a failure shows before the answer has begun.
 *
 * @param onFailure told what the rest of the answer failed with; whoever reads it gets the error too
 */
export async function begin(
  answer: AsyncGenerator<Buffer, void, undefined>,
  onFailure: (error: unknown) => void,
): Promise<BegunAnswer> {
  const first = await answer.next();
  const rest = async function* (): AsyncGenerator<Buffer, void, undefined> {
    try {
      if (first.done !== true) {
        yield first.value;
        yield* answer;
      }
    } catch (error) {
      onFailure(error);
      throw error;
    } finally {
      await answer.return(undefined);
    }
  };
  return { chunks: rest() };
}

/** Codes that do not mean damage: the request, or another process at work. */
const HARMLESS: readonly string[] = ["unservable", "locked"];

/** Whether an error says that stored packs are damaged. */
export function isDamage(error: unknown): boolean {
  if (error instanceof GitStoreError) return !HARMLESS.includes(error.code);
  return error instanceof ProofFailure && error.code === undefined;
}
