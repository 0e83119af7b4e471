import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildPackages } from "../build/packages.ts";
import { tarGz } from "./archive.ts";

/** Writes an npm package of each published package into a folder, as `npm pack` names it. @returns the names of the files */
export async function writeTarballs(folder: string, epoch: number): Promise<string[]> {
  const names: string[] = [];
  for (const { name, version, files } of await buildPackages()) {
    const file = `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
    const entries = [...files].map(([path, content]) => ({
      path: `package/${path}`,
      content,
      isProgram: false,
    }));
    await writeFile(join(folder, file), tarGz(entries, epoch));
    names.push(file);
  }
  return names;
}
