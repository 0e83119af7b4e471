import { hash } from "node:crypto";
import { FLUSH_PKT, encodePktLine } from "@devplat/git-protocol";
import type { StoredSeed } from "@devplat/git-mirror";
import { BRAND } from "../../brand.ts";

/** Name of the seed in the list of bundles. */
const BUNDLE_ID = "seed";

/**
 * The beginning of a bundle with all objects of a seed (gitformat-bundle): its refs. The pack of the seed follows. The bundle has no
 * prerequisites, because a seed has the whole history of its refs.
 */
export function bundleHeader({ format, refs }: StoredSeed): Buffer {
  const signature = format === "sha1" ? "# v2 git bundle\n" : `# v3 git bundle\n@object-format=${format}\n`;
  return Buffer.from(`${signature}${refs.map(({ name, oid }) => `${oid} ${name}\n`).join("")}\n`);
}

/** Strong entity tag of a bundle. Seeds with the same pack can have different refs. */
export function bundleTag(header: Buffer, packSha256: string): string {
  return hash("sha256", Buffer.concat([header, Buffer.from(packSha256)]));
}

/**
 * The response to the command `bundle-uri` (gitprotocol-v2), which has one bundle or none. Git resolves the address of the bundle
 * against that of the repository, so it sends the same credential to the same service.
 */
export function encodeBundleList(seed: StoredSeed | undefined): Buffer {
  const lines = ["bundle.version=1", "bundle.mode=all"];
  if (seed !== undefined) lines.push(`bundle.${BUNDLE_ID}.uri=${BRAND.command}/seed/${seed.name}.bundle`);
  return Buffer.concat([...lines.map((line) => encodePktLine(line)), FLUSH_PKT]);
}
