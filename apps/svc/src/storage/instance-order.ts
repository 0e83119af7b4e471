import type { InstanceRecord } from "./coordination-store.ts";

/** Order of instances in lists: by host name, then id. */
export function byHostName(one: InstanceRecord, other: InstanceRecord): number {
  if (one.hostName === other.hostName) return one.id < other.id ? -1 : 1;
  return one.hostName < other.hostName ? -1 : 1;
}
