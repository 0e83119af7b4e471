import { readlink, realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Maximum links from one path, as many as Linux follows. */
const MAX_LINKS = 40;

/** A path, then the target of each symbolic link that starts there. Nothing exists at the last one, or it is not a link. */
export async function linkChain(path: string): Promise<readonly [string, ...string[]]> {
  const chain: [string, ...string[]] = [path];
  try {
    for (let here = path; chain.length <= MAX_LINKS;) {
      const target = await readlink(here);
      // The folder may be a link, too: `..` in a target starts from where it leads.
      here = resolve(await realpath(dirname(here)), target);
      chain.push(here);
    }
  } catch {
    // The end of the chain.
  }
  return chain;
}
