import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import {
  mergeRefs,
  type Adoption,
  type AdoptionResult,
  type Mirror,
  type StagedPack,
} from "@devplat/git-mirror";

/** Takes in the state of another mirror, as a download brings it. */
export async function adoptFrom(
  other: Mirror,
  mirror: Mirror,
  options: Partial<Adoption> & { readonly skip?: readonly string[] } = {},
): Promise<AdoptionResult> {
  await using snapshot = await other.sharing.snapshot();
  if (snapshot === undefined) throw new Error("the other mirror is empty");
  const { format, refs } = snapshot;
  await using folder = await mirror.sharing.stage(format);
  const packs: StagedPack[] = [];
  for (const { name, files } of snapshot.packs) {
    if (options.skip?.includes(name) === true) continue;
    const kinds = Object.keys(files) as StagedPack["kinds"];
    for (const kind of kinds) await copyFile(files[kind]!, join(folder.path, `${name}.${kind}`));
    packs.push({ name, kinds });
  }
  return await mirror.sharing.adopt({
    format,
    folder,
    packs,
    shared: new Set(snapshot.packs.map(({ name }) => name)),
    replaced: new Set(),
    refs: (before) => mergeRefs(before, refs.values(), [], () => false),
    retained: snapshot.retainedRefs,
    ...options,
  });
}
