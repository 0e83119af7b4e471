import { spawnSync } from "node:child_process";
import { mkdir, readdir, readlink, symlink } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { git, run } from "@devplat/testkit";

const ROOT = resolve(import.meta.dirname, "../..");
/** The first version whose instances share packs and responses through a bucket, and coordinate by Postgres. */
export const FIRST_SHARING_VERSION = "70c99e4266d24c5f551f9928f8a146be3bd86340";
/** Packages of this repository, as links in node_modules. */
const OWN_SCOPE = "@devplat";

/** Whether the history of this clone has a commit. A shallow clone does not have it. */
export function hasCommit(commit: string): boolean {
  return spawnSync("git", ["-C", ROOT, "cat-file", "-e", `${commit}^{commit}`]).status === 0;
}

/**
 * Writes the sources of an earlier version, with the installed packages of this one.
 *
 * @param folder that does not exist
 * @returns path of its program `svc`
 */
export async function earlierSvc(commit: string, folder: string): Promise<string> {
  await mkdir(folder);
  const archive = join(folder, "sources.tar");
  await git([
    "-C",
    ROOT,
    "archive",
    "-o",
    archive,
    commit,
    "apps",
    "packages",
    "tests/testkit",
    "tools",
    "package.json",
  ]);
  const { code, stderr } = await run("tar", ["-xf", archive, "-C", folder]);
  if (code !== 0) throw new Error(`Cannot unpack the sources of ${commit}: ${stderr}`);
  const [installed, target] = [join(ROOT, "node_modules"), join(folder, "node_modules")];
  await mkdir(join(target, OWN_SCOPE), { recursive: true });
  for (const name of await readdir(installed)) {
    if (name !== OWN_SCOPE && !name.startsWith(".")) await symlink(join(installed, name), join(target, name));
  }
  for (const name of await readdir(join(installed, OWN_SCOPE))) {
    const link = join(installed, OWN_SCOPE, name);
    const source = relative(ROOT, resolve(dirname(link), await readlink(link)));
    await symlink(join(folder, source), join(target, OWN_SCOPE, name));
  }
  return join(folder, "apps/svc/bin/svc");
}
