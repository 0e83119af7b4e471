/** The last record of a page of a list that is ordered by time, newest first, and by id within a millisecond. */
export interface ListPosition {
  readonly at: number;
  readonly id: string;
}

/** A position as one text for the outside. */
export function cursorOf({ at, id }: ListPosition): string {
  return `${at}.${id}`;
}

/** Undefined: the text is no cursor. */
export function positionOf(text: string): ListPosition | undefined {
  const [, at, id] = /^(\d{1,15})\.([0-9a-f-]{36})$/.exec(text) ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
}

/** Whether a record stands after the position, which is further back in time. */
export function isAfter(record: ListPosition, position: ListPosition): boolean {
  return record.at < position.at || (record.at === position.at && record.id < position.id);
}
