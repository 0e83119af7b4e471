import { readFile, readlink } from "node:fs/promises";

/** The first descriptor that a supervisor passes (sd_listen_fds(3): SD_LISTEN_FDS_START). */
const FIRST_DESCRIPTOR = 3;

const SOCKET_NAMES = ["api", "peer", "agent", "docker", "mount"] as const;
/**
 * `api`: the whole JSON API. `peer`: what may be forwarded to another host. `agent`: the SSH agent. `docker`: the volume plugin.
 * `mount`: the mount helper, which is a process of its own.
 */
export type SocketName = (typeof SOCKET_NAMES)[number];

/**
 * The listening sockets that a supervisor such as systemd has opened for this process (sd_listen_fds(3)), as file
 * descriptors. `FileDescriptorName=` says which is which; sockets without such a name count in the order api, peer, agent,
 * docker, mount.
 */
export function activatedSockets(
  environment: NodeJS.ProcessEnv,
  pid: number,
): ReadonlyMap<SocketName, number> {
  const found = new Map<SocketName, number>();
  // Meant for another process: a parent that did not clean up after itself.
  if (environment["LISTEN_PID"] !== String(pid)) return found;
  const count = Number(environment["LISTEN_FDS"]);
  if (!Number.isInteger(count) || count < 1) return found;
  const names = (environment["LISTEN_FDNAMES"] ?? "").split(":");
  for (let i = 0; i < count; i++) {
    const named = SOCKET_NAMES.find((name) => name === names[i]);
    const name = named ?? (names.some(isName) ? undefined : SOCKET_NAMES[i]);
    if (name !== undefined && !found.has(name)) found.set(name, FIRST_DESCRIPTOR + i);
  }
  return found;
}

/**
 * Path of a Unix socket that this process holds; undefined for an abstract one, for another kind
 * of descriptor, and where the system does not say.
 */
export async function descriptorPath(descriptor: number): Promise<string | undefined> {
  try {
    const inode = /^socket:\[(\d+)\]$/.exec(await readlink(`/proc/self/fd/${descriptor}`))?.[1];
    if (inode === undefined) return undefined;
    // Columns: slot, references, protocol, flags, type, state, inode, path.
    for (const line of (await readFile("/proc/net/unix", "utf8")).split("\n").slice(1)) {
      const columns = /^(?:\S+\s+){6}(\S+) (\/.*)$/.exec(line);
      if (columns?.[1] === inode) return columns[2];
    }
    return undefined;
  } catch {
    return undefined;
  }
}

function isName(name: string): boolean {
  return SOCKET_NAMES.some((known) => known === name);
}
