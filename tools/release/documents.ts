import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { SHELLS, completionFile } from "@devplat/cli/completion";
import { manPage } from "@devplat/cli/man-page";
import { gzipSync } from "node:zlib";
import type { BundledPackage } from "./bundled-packages.ts";
import { ownPlatform } from "../build/single/platforms.ts";
import { thirdPartyText } from "./licences.ts";
import { RELEASED } from "./programs.ts";
import { ROOT } from "../build/root.ts";
import { dayOf } from "./source.ts";

/** File names of completions, as each shell looks for them. */
const COMPLETION_NAMES = {
  bash: (name: string) => name,
  zsh: (name: string) => `_${name}`,
  fish: (name: string) => `${name}.fish`,
} as const;

/** Texts that go with a program, by path in the archive. */
export async function documentsOf(
  name: "svc" | "agent",
  parts: {
    readonly version: string;
    readonly epoch: number;
    readonly packages: readonly BundledPackage[];
    /** Versions of Node in the files of all platforms. */
    readonly nodes: readonly string[];
  },
): Promise<Map<string, Buffer>> {
  const { version, epoch, packages, nodes } = parts;
  const { table, files, seeAlso } = RELEASED[name];
  const documents = new Map<string, Buffer>();
  const add = (path: string, text: string): void => void documents.set(path, Buffer.from(text));
  const nodeLicence = await readFile(join(ROOT, "node_modules", ownPlatform().runtime, "LICENSE"), "utf8");
  add("LICENSE", await readFile(join(ROOT, "LICENSE"), "utf8"));
  add("THIRD-PARTY", thirdPartyText(packages, { versions: nodes, text: nodeLicence }));
  add(`man/${name}.1`, manPage(table, { version, date: dayOf(epoch), files, seeAlso }));
  for (const shell of SHELLS) {
    add(`completions/${shell}/${COMPLETION_NAMES[shell](name)}`, completionFile(table, shell));
  }
  const example = name === "svc" ? "svc.yaml" : "config.yaml";
  add(`examples/${example}`, await readFile(join(ROOT, "deploy/packages", name, example), "utf8"));
  return documents;
}

/** Compressed as Debian wants it: `gzip -9n`. */
export function gzipped(content: Buffer): Buffer {
  return gzipSync(content, { level: 9 });
}
