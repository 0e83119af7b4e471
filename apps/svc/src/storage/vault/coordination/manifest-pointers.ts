import type { ManifestPointer, ManifestPointerStore } from "../../coordination-store.ts";
import { nameFor, type VaultKv } from "../kv.ts";

export function vaultManifestPointers(kv: VaultKv): ManifestPointerStore {
  return {
    async get(key) {
      return (await kv.read<ManifestPointer>(pathOf(key)))?.value;
    },

    async replace(key, { name, generation, fence }, expected) {
      const stored = await kv.read<ManifestPointer>(pathOf(key));
      if (stored?.value.generation !== expected || (stored?.value.fence ?? 0) > fence) return false;
      return kv.write(pathOf(key), { name, generation, fence }, stored?.version ?? 0);
    },
  };
}

function pathOf(key: string): string {
  return `manifest-pointers/${nameFor(key)}`;
}
