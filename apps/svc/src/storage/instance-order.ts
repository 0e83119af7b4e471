import type { InstanceRecord } from "./coordination-store.ts";

/** Order of instances in lists: by host name, then address, then id. */
export function byHostName(one: InstanceRecord, other: InstanceRecord): number {
  const [first, second] = [one, other].map(({ hostName, address = "", id }) => [hostName, address, id]);
  const at = first!.findIndex((text, index) => text !== second![index]);
  return first![at]! < second![at]! ? -1 : 1;
}
