import type { InstanceRecord } from "./coordination-store.ts";

/** The last record of a page of a list that is ordered by time, newest first, and by id within a millisecond. */
export interface ListPosition {
  readonly at: number;
  readonly id: string;
}

/** A position as one text for clients. */
function cursorOf({ at, id }: ListPosition): string {
  return `${at}.${id}`;
}

/**
 * One page of a list.
 *
 * @param records of which the caller read more than the limit if there are more
 */
export function pageOf<T>(
  records: readonly T[],
  limit: number,
  position: (record: T) => ListPosition,
): { readonly records: readonly T[]; readonly next: string | undefined } {
  const page = records.slice(0, limit);
  const last = page.at(-1);
  const hasMore = records.length > limit && last !== undefined;
  return { records: page, next: hasMore ? cursorOf(position(last)) : undefined };
}

/** Undefined: the text is not a cursor. */
export function positionOf(text: string): ListPosition | undefined {
  const [, at, id] = /^(\d{1,15})\.([0-9a-f-]{36})$/.exec(text) ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
}

/** Whether a record is after the position, so further back in time. */
export function isAfter(record: ListPosition, position: ListPosition): boolean {
  return record.at < position.at || (record.at === position.at && record.id < position.id);
}

/** Order of instances in lists: by host name, then address, then id. */
export function byHostName(one: InstanceRecord, other: InstanceRecord): number {
  const [first, second] = [one, other].map(({ hostName, address = "", id }) => [hostName, address, id]);
  const at = first!.findIndex((text, index) => text !== second![index]);
  return first![at]! < second![at]! ? -1 : 1;
}
