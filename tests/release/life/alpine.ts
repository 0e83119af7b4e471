import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { peerCache, pinsKey, run, tempFolder, TestkitError, type TempFolder } from "@devplat/testkit";

const SOURCES = join(import.meta.dirname, "../../../tools/apk");
const BUILD_LIMIT_MS = 10 * 60_000;
/** Programs that the scripts of the packages call. */
const APPLETS = "cat chmod chown cp echo grep id mkdir mv od rm sed sh stat tr true".split(" ");

/** Folder with the packages of one architecture, and their index. */
export class AlpineRepository {
  readonly #folder: TempFolder;
  readonly #apk: string;
  readonly #architecture: string;

  private constructor(folder: TempFolder, apk: string, architecture: string) {
    this.#folder = folder;
    this.#apk = apk;
    this.#architecture = architecture;
  }

  /** @param architecture as Alpine names it */
  static async make(architecture: string): Promise<AlpineRepository> {
    const folder = await tempFolder("alpine");
    await mkdir(join(folder.path, "repository", architecture), { recursive: true });
    return new AlpineRepository(folder, await builtApk(), architecture);
  }

  get #repository(): string {
    return join(this.#folder.path, "repository");
  }

  /** Adds a package under the name that a repository gives it. */
  async add(file: string, name: string): Promise<void> {
    await copyFile(file, join(this.#repository, this.#architecture, `${name}.apk`));
    await must(this.#apk, ["index", join(this.#repository, this.#architecture)]);
  }

  /** A folder with the programs of Alpine's base system, busybox. */
  async root(): Promise<string> {
    const root = await mkdtemp(join(this.#folder.path, "root-"));
    await mkdir(join(root, "bin"));
    await mkdir(join(root, "etc"));
    const { stdout } = await run("which", ["busybox"]);
    await copyFile(stdout.trim(), join(root, "bin/busybox"));
    for (const name of APPLETS) await symlink("busybox", join(root, "bin", name));
    return root;
  }

  /** Installs a package with what it depends on. @returns lines `name version` of what is installed */
  async install(root: string, name: string): Promise<readonly string[]> {
    const { code, stdout, stderr } = await run(this.#apk, [
      "add",
      root,
      this.#repository,
      this.#architecture,
      name,
    ]);
    if (code !== 0) throw new Error(stderr);
    return stdout.trim().split("\n").toSorted();
  }

  async remove(): Promise<void> {
    await this.#folder.remove();
  }
}

/** Builds the program of `tools/apk` from the versions that it pins, once. */
async function builtApk(): Promise<string> {
  const folder = join(peerCache(), `apk-${pinsKey("tools/apk", ["go.mod", "go.sum", "main.go"])}`);
  const program = join(folder, "apk");
  if (existsSync(program)) return program;
  await mkdir(peerCache(), { recursive: true });
  // An interrupted build leaves nothing under that name.
  const unfinished = await mkdtemp(join(peerCache(), "apk-unfinished-"));
  try {
    await must(
      "go",
      ["build", "-trimpath", "-ldflags", "-s -w", "-o", join(unfinished, "apk"), "."],
      SOURCES,
    );
    await rename(unfinished, folder);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
  return program;
}

async function must(command: string, args: readonly string[], cwd?: string): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, {
    timeoutMs: BUILD_LIMIT_MS,
    ...(cwd === undefined ? {} : { cwd }),
  });
  if (code !== 0) throw TestkitError.failed(command, stderr);
  return stdout;
}
