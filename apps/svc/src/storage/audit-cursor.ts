import type { AuditRecord } from "./store.ts";

/** Where a page of audit records ended: the time and id of its last record, as one text for the outside. */
export function cursorOf({ at, id }: Pick<AuditRecord, "at" | "id">): string {
  return `${at}.${id}`;
}

/** Undefined: the text is no cursor. */
export function afterCursor(text: string): Pick<AuditRecord, "at" | "id"> | undefined {
  const [, at, id] = /^(\d{1,15})\.([0-9a-f-]{36})$/.exec(text) ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
}
