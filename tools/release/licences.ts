import type { BundledPackage } from "./bundled-packages.ts";

const RULE = `${"=".repeat(80)}\n`;

/** The licences of everything in a program: of the packages that are bundled, and of Node with what is in Node. */
export function thirdPartyText(
  packages: readonly BundledPackage[],
  node: { readonly versions: readonly string[]; readonly text: string },
): string {
  return [
    "This program contains the software of other authors below, under the licences that follow.\n",
    ...packages.map(
      ({ name, version, license, text }) => `${RULE}${name} ${version} (${license})\n\n${text.trim()}\n`,
    ),
    `${RULE}Node.js ${node.versions.join(", ")} (MIT, and the licences of the software in it)\n\n${node.text.trim()}\n`,
  ].join("\n");
}
