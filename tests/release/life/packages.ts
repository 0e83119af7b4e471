import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { ownPlatform } from "../../../tools/build/single/platforms.ts";
import type { Format } from "../../../tools/release/packages.ts";

const ROOT = join(import.meta.dirname, "../../..");
const BUILD_LIMIT_MS = 600_000;

/** Two versions of the same code: a package that is installed first, and one that replaces it. */
export const OLD = "1.0.0";
export const LATER = "1.1.0";

const ENDINGS: Readonly<Record<Format, string>> = {
  deb: ".deb",
  rpm: ".rpm",
  apk: ".apk",
  archlinux: ".pkg.tar.zst",
};

/** Packages of both versions of a program, for this machine's processor. */
export class Packages {
  readonly #folder: TempFolder;
  readonly #files: readonly string[];

  private constructor(folder: TempFolder, files: readonly string[]) {
    this.#folder = folder;
    this.#files = files;
  }

  /** Makes them by `npm run release`, from the files as they are now. */
  static async build(program: "svc" | "agent", formats: readonly Format[] = ["deb"]): Promise<Packages> {
    const folder = await tempFolder(`packages-of-${program}`);
    const what = ["--programs", program, "--platforms", ownPlatform().name, "--formats", formats.join(",")];
    for (const version of [OLD, LATER]) {
      const to = ["--out", join(folder.path, version), "--version", version, "--allow-changes"];
      const args = [join(ROOT, "tools/run.sh"), "tools/release/release.ts", ...to, ...what];
      const { code, stdout, stderr } = await run("sh", args, { cwd: ROOT, timeoutMs: BUILD_LIMIT_MS });
      if (code !== 0) throw new Error(`npm run release ended with ${code}: ${stderr || stdout}`);
    }
    return new Packages(folder, await readdir(folder.path, { recursive: true }));
  }

  /** Folder of all of them, for the machine. */
  get folder(): string {
    return this.#folder.path;
  }

  /** Path of a package below the folder. */
  fileOf(version: string, format: Format = "deb"): string {
    const found = this.#files.find(
      (file) => file.startsWith(`${version}/`) && file.endsWith(ENDINGS[format]),
    );
    if (found === undefined)
      throw new Error(`there is no ${format} of ${version}: ${this.#files.join(", ")}`);
    return found;
  }

  async remove(): Promise<void> {
    await this.#folder.remove();
  }
}
