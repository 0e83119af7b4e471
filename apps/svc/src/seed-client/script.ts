import { assetContent } from "@devplat/base/asset-content";

/** Text of the script that clones by a seed: `svc clone` runs it, and the service serves it. */
export function seedScript(): string {
  return assetContent(new URL("svc-seed.sh", import.meta.url)).toString();
}
