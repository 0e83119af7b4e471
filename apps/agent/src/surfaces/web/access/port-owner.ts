import { readdir, readFile, readlink } from "node:fs/promises";
import { systemSocketOwners } from "./socket-owners.ts";
import { endpoint, TCP_STATE } from "./socket-table.ts";

/**
 * The owner of a port, in words: `process 4711 (vault)`, or `user 33` where the process cannot be read.
 * Undefined where the system does not say (another platform, a sandbox).
 */
export async function portOwner(address: string, port: number): Promise<string | undefined> {
  const wanted = [endpoint(address, port), endpoint("0.0.0.0", port), endpoint("::", port)];
  const tables = ["tcp", "tcp6"] as const;
  const records = await Promise.all(
    tables.map((table) => systemSocketOwners.read(table, port).catch(() => [])),
  );
  const record = records
    .flat()
    .find(({ local, state }) => state === TCP_STATE.listen && wanted.includes(local));
  if (record === undefined) return undefined;
  return (await processOf(record.inode)) ?? `user ${record.uid}`;
}

async function processOf(inode: number): Promise<string | undefined> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const descriptor of descriptors) {
      const link = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => "");
      if (link !== `socket:[${inode}]`) continue;
      const name = (await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")).trim();
      return name === "" ? `process ${pid}` : `process ${pid} (${name})`;
    }
  }
  return undefined;
}
