import type { AuditAction, AuditEvent, AuditOutcome } from "./audit-event.ts";

/** An audit event as it is kept. */
export interface AuditRecord extends AuditEvent {
  readonly id: string;
  readonly at: number;
}

/** Which audit records; all given conditions hold together. */
export interface AuditQuery {
  /** One of these; empty: any. */
  readonly actions?: readonly AuditAction[] | undefined;
  /** Login, in any case of letters. */
  readonly actor?: string | undefined;
  /** In any case of letters. */
  readonly target?: string | undefined;
  readonly outcome?: AuditOutcome | undefined;
  /** At or after. */
  readonly from?: number | undefined;
  /** Before. */
  readonly to?: number | undefined;
  /** {@link AuditPage.next} of the page before; any other text gives an empty page. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface AuditPage {
  readonly records: readonly AuditRecord[];
  /** Undefined: this is the last page. */
  readonly next: string | undefined;
}

export interface AuditStore {
  /** Appends all or none. A record whose id exists is left unchanged, so that a batch can be sent again. */
  append(records: readonly AuditRecord[]): Promise<void>;
  /** Newest first. */
  query(query: AuditQuery): Promise<AuditPage>;
  deleteBefore(time: number): Promise<number>;
}
