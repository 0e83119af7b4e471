import type { RepackResult } from "../storage/contract.ts";

/**
 * Change of a mirror that others may want to share.
 * - `filled`: it has a new pack, or new refs, from the upstream.
 * - `adopted`: it has packs or refs of a shared state.
 * - `repacked`: a merged pack replaced others.
 * - `removed`: its data was removed or quarantined.
 */
export type MirrorChange =
  | { readonly kind: "filled" }
  | { readonly kind: "adopted" }
  | { readonly kind: "removed" }
  | { readonly kind: "repacked"; readonly result: RepackResult };
