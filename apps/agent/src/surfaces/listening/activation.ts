import { handedOverSockets } from "@devplat/base/handed-over";
import { readFile, readlink } from "node:fs/promises";

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
  const sockets = handedOverSockets(environment, pid);
  const areNamed = sockets.some(({ name }) => socketName(name) !== undefined);
  for (const [index, { name: given, descriptor }] of sockets.entries()) {
    const name = areNamed ? socketName(given) : SOCKET_NAMES[index];
    if (name !== undefined && !found.has(name)) found.set(name, descriptor);
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

function socketName(name: string): SocketName | undefined {
  return SOCKET_NAMES.find((known) => known === name);
}
