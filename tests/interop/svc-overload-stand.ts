import { git } from "@devplat/testkit";

/** Makes a commit without changes, and a branch for it, so that its clone is a response of its own. @returns its id */
export async function commitOn(path: string, branch: string, parent: string): Promise<string> {
  const author = ["-c", "user.name=a", "-c", "user.email=a@a"];
  const tree = `${parent}^{tree}`;
  const oid = await git(["-C", path, ...author, "commit-tree", "-p", parent, "-m", branch, tree]);
  await git(["-C", path, "branch", branch, oid]);
  return oid;
}

/** Arguments of git that clone one branch, with progress, into a folder of its name. */
export function cloneOfBranch(address: string, branch: string): string[] {
  return ["clone", "--progress", "--bare", "--single-branch", "-b", branch, address, branch];
}

/** An object id that no repository has. */
export function invented(at: number): string {
  return at.toString(16).padStart(40, "f");
}
