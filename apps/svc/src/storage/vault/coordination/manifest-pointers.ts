import type { ManifestPointer, ManifestPointerStore } from "../../coordination-store.ts";
import { nameFor, type VaultKv } from "../kv.ts";

export function vaultManifestPointers(kv: VaultKv): ManifestPointerStore {
  return {
    async get(key) {
      return (await kv.read<ManifestPointer>(pointerPath(key)))?.value;
    },

    async replace(key, { name, generation, fence }, expected) {
      const stored = await kv.read<ManifestPointer>(pointerPath(key));
      if (stored?.value.generation !== expected || (stored?.value.fence ?? 0) > fence) return false;
      return kv.write(pointerPath(key), { name, generation, fence }, stored?.version ?? 0);
    },
  };
}

export function pointerPath(key: string): string {
  return `manifest-pointers/${nameFor(key)}`;
}
