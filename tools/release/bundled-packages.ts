import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Metafile } from "esbuild";
import { ROOT } from "../build/root.ts";

/** A package of which code is in a program. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Text of the licence, and of a notice that has to be passed on. */
  readonly text: string;
}

/** The packages of other authors that bundles were made of, by name and version. */
export async function bundledPackages(metafiles: readonly Metafile[]): Promise<BundledPackage[]> {
  const folders = new Set<string>();
  for (const { inputs } of metafiles) {
    for (const input of Object.keys(inputs)) {
      const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input.replace(/^[\w-]+:/, "")) ?? [];
      if (folder !== undefined) folders.add(folder);
    }
  }
  const found = await Promise.all([...folders].map(async (folder) => readPackage(join(ROOT, folder))));
  const ids = new Map(found.map((each) => [`${each.name}@${each.version}`, each]));
  return [...ids].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}

async function readPackage(folder: string): Promise<BundledPackage> {
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
    name: string;
    version: string;
    license?: string;
  };
  const { name, version, license } = manifest;
  if (license === undefined)
    throw new Error(`Cannot release ${name} ${version}: its package.json names no licence`);
  const text = await textIn(folder);
  return { name, version, license, text: text ?? `${name} is licensed under ${license}.` };
}

async function textIn(folder: string): Promise<string | undefined> {
  const files = (await readdir(folder)).filter((file) =>
    /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i.test(file),
  );
  const texts = await Promise.all(files.toSorted().map(async (file) => readFile(join(folder, file), "utf8")));
  return texts.length === 0 ? undefined : texts.map((text) => text.trim()).join("\n\n");
}
