import { GitStoreError } from "../errors.ts";
import type { Pack } from "../pack/pack.ts";
import { numbersIn, type Bitset } from "../reachability/bitset.ts";
import type { PackSource } from "../serve/pack-writer.ts";

/** Checks that a new pack contains exactly the selected objects. Its ids were computed from its content. */
export function checkSame({ numbers }: PackSource, send: Bitset, count: number, pack: Pack): void {
  let found = 0;
  for (const number of numbersIn(send)) {
    const owner = numbers.packOf(number);
    if (pack.find(owner.pack.index.bytes, owner.pack.oidStartAt(number - owner.base)) >= 0) found++;
  }
  if (found === count && pack.count === count) return;
  const { path } = numbers.packs[0]!.pack;
  throw new GitStoreError(
    "corrupt_object",
    `copy objects of ${path} into a new pack: an object's content has another id`,
    { path },
  );
}
