import { z } from "zod";
import { AUDIT_ACTIONS, type AuditAction } from "../audit/audit-event.ts";
import type { AuditPage, AuditStore } from "../audit/audit-store.ts";
import type { Actor } from "../identity/principal.ts";
import { timePagingQuery } from "./paging.ts";
import { requireAdmin } from "./permission.ts";

/** Records of a page, where no limit is given. */
const DEFAULT_LIMIT = 100;
/** Characters of a filter. */
const MAX_TEXT = 300;

const instant = z.iso.datetime({ offset: true, error: "must be a time such as 2030-01-31T12:00:00Z" });

/** Filter and page of a list of audit records. */
export const auditQuerySchema = z.strictObject({
  action: z
    .string()
    .max(1000)
    .refine((text) => text.split(",").every(isAction), `must be one or more of: ${AUDIT_ACTIONS.join(", ")}`)
    .optional()
    .meta({ description: "One, or several separated by commas", example: "token.created,token.revoked" }),
  actor: z.string().min(1).max(MAX_TEXT).optional().meta({ description: "Login, in any case of letters" }),
  target: z.string().min(1).max(MAX_TEXT).optional().meta({ description: "In any case of letters" }),
  outcome: z.enum(["allowed", "denied", "failed"]).optional(),
  from: instant.optional().meta({ description: "At or after" }),
  to: instant.optional().meta({ description: "Before" }),
  ...timePagingQuery,
  limit: timePagingQuery.limit.meta({ description: `Default ${DEFAULT_LIMIT}` }),
});

/** The audit trail, for admins to read. */
export class AuditLog {
  readonly #store: AuditStore;

  constructor(store: AuditStore) {
    this.#store = store;
  }

  /** Newest first. @throws SvcError `forbidden` */
  async list(actor: Actor, query: z.output<typeof auditQuerySchema>): Promise<AuditPage> {
    requireAdmin(actor);
    const { action, from, to, limit, ...rest } = query;
    return this.#store.query({
      ...rest,
      actions: action?.split(",").filter(isAction),
      from: from === undefined ? undefined : Date.parse(from),
      to: to === undefined ? undefined : Date.parse(to),
      limit: limit === undefined ? DEFAULT_LIMIT : Number(limit),
    });
  }
}

function isAction(text: string): text is AuditAction {
  return AUDIT_ACTIONS.some((known) => known === text);
}
