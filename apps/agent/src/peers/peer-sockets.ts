import { lstat, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expandHome } from "../config/sections/rule.ts";

/** A socket over which another daemon of this user may respond: the daemon of the user's workstation. */
export interface PeerSocket {
  readonly path: string;
  /** Device and inode. A socket that was made again has another one. */
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly modified: number;
}

/**
 * The sockets of this user below folders that no other user can write. In other folders a socket may be replaced.
 *
 * @param patterns `store.token_socket`: paths whose last segment may hold `*` and `?`
 */
export async function findPeerSockets(patterns: readonly string[], home: string): Promise<PeerSocket[]> {
  const found = new Map<string, PeerSocket>();
  for (const pattern of patterns) {
    for (const peer of await matching(expandHome(pattern, home))) found.set(peer.key, peer);
  }
  return [...found.values()];
}

async function matching(pattern: string): Promise<PeerSocket[]> {
  const folder = dirname(pattern);
  const name = globOf(basename(pattern));
  const uid = process.geteuid?.();
  try {
    const owner = await stat(folder);
    if (uid !== undefined && ((owner.uid !== uid && owner.uid !== 0) || (owner.mode & 0o022) !== 0))
      return [];
    const peers: PeerSocket[] = [];
    for (const each of await readdir(folder)) {
      if (!name.test(each)) continue;
      const path = join(folder, each);
      const socket = await lstat(path).catch(() => undefined);
      if (socket?.isSocket() !== true || (uid !== undefined && socket.uid !== uid)) continue;
      peers.push({ path, key: `${socket.dev}:${socket.ino}`, modified: socket.mtimeMs });
    }
    return peers;
  } catch {
    // No such folder, or one that cannot be read.
    return [];
  }
}

function globOf(pattern: string): RegExp {
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${source}$`);
}
