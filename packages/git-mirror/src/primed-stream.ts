import { GitStoreError } from "@devplat/git-store";
import { isUnreadable } from "@devplat/base/file-damage";
import { ProofFailure } from "./threads/check-thread.ts";

/** Bytes of an answer that are made before it begins: with most fetches, and all small ones, the whole. */
export const HELD_BYTES = 512 * 1024;

/** An answer whose first bytes are made: what can go wrong by the request or by a missing object did not. */
export interface BegunAnswer {
  readonly chunks: AsyncIterable<Buffer>;
}

/**
 * Asks for the first half megabyte now: a failure that shows in it, also of a damaged pack, shows before the answer has
 * begun, when the code host can still give it.
 *
 * @param onFailure told what the rest of the answer failed with; returns the error that its reader gets
 */
export async function begin(
  answer: AsyncGenerator<Buffer, void, undefined>,
  onFailure: (error: unknown) => Error,
): Promise<BegunAnswer> {
  const held: Buffer[] = [];
  for (let size = 0; size < HELD_BYTES;) {
    const next = await answer.next();
    if (next.done === true) break;
    held.push(next.value);
    size += next.value.length;
  }
  const all = async function* (): AsyncGenerator<Buffer, void, undefined> {
    try {
      yield* held.splice(0);
      yield* answer;
    } catch (error) {
      throw onFailure(error);
    } finally {
      await answer.return(undefined);
    }
  };
  return { chunks: all() };
}

/** Codes that do not mean damage: the request, or another process at work. */
const HARMLESS: readonly string[] = ["unservable", "locked"];

/** Whether an error says that stored packs, or files beside them, are damaged. */
export function isDamage(error: unknown): boolean {
  if (isUnreadable(error)) return true;
  if (error instanceof GitStoreError) return !HARMLESS.includes(error.code);
  return error instanceof ProofFailure && error.code === undefined;
}
