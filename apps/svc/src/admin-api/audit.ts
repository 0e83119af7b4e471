import type { AuditQuery, AuditRecord, AuditStore } from "../audit/audit-store.ts";
import { z } from "zod";
import { AUDIT_ACTIONS, type AuditAction } from "../audit/audit-event.ts";
import type { OwnAddress } from "../own-address.ts";
import { operation, type Operation } from "./operation.ts";
import { nextPage, timePagingQuery } from "./paging.ts";

const PATH = "/api/audit";
const DEFAULT_LIMIT = 100;
const MAX_TEXT = 300;

const time = z.iso.datetime();
export const auditRecordSchema = z
  .strictObject({
    id: z.string().meta({ description: "UUIDv7" }),
    at: time,
    action: z.enum(AUDIT_ACTIONS),
    outcome: z.enum(["allowed", "denied", "failed"]),
    actor: z.strictObject({
      kind: z.enum([
        "anonymous",
        "foreign",
        "user",
        "proxy_token",
        "agent_token",
        "administration_token",
        "system",
      ]),
      login: z.string().nullable(),
      credential_id: z.string().nullable().meta({ description: "Id of the token or session that was used" }),
    }),
    target: z.string().nullable().meta({ description: "owner/name, a token's id, a login, an API path" }),
    remote_ip: z.string().nullable(),
    request_id: z.string().nullable(),
    details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).nullable(),
  })
  .meta({ id: "AuditRecord" });

const instant = z.iso.datetime({ offset: true, error: "must be a time such as 2030-01-31T12:00:00Z" });

/** The query parameters of the list. */
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

/** Reading the audit trail. Nothing changes it but time. */
export function auditOperations(audit: AuditStore, address: OwnAddress): Operation[] {
  return [
    operation({
      method: "GET",
      path: PATH,
      id: "listAuditRecords",
      tag: "Audit",
      summary: "Who did what, when, from where, with what outcome",
      description:
        "Newest first. A `Link` header leads to the next page. A record is listed within seconds of the deed.",
      access: "admin",
      query: auditQuerySchema,
      result: z.array(auditRecordSchema),
      successStatus: 200,
      async handle({ query }) {
        const { records, next } = await audit.query(storeQuery(query));
        const { cursor: _, ...rest } = query;
        const headers =
          next === undefined ? {} : nextPage(`${address.baseUrl}${PATH}`, { ...rest, cursor: next });
        return { status: 200, headers, body: records.map(auditView) };
      },
    }),
  ];
}

/** A checked query as the store takes it. */
export function storeQuery(query: z.output<typeof auditQuerySchema>): AuditQuery {
  const { action, actor, target, outcome, from, to, limit, cursor } = query;
  return {
    actions: action?.split(",").filter(isAction),
    actor,
    target,
    outcome,
    from: from === undefined ? undefined : Date.parse(from),
    to: to === undefined ? undefined : Date.parse(to),
    limit: limit === undefined ? DEFAULT_LIMIT : Number(limit),
    cursor,
  };
}

/** A record as the API gives it. */
function auditView(record: AuditRecord): z.output<typeof auditRecordSchema> {
  return {
    id: record.id,
    at: new Date(record.at).toISOString(),
    action: record.action,
    outcome: record.outcome,
    actor: {
      kind: record.actor.kind,
      login: record.actor.login ?? null,
      credential_id: record.actor.credentialId ?? null,
    },
    target: record.target ?? null,
    remote_ip: record.remoteAddress ?? null,
    request_id: record.requestId ?? null,
    details: record.details === undefined ? null : { ...record.details },
  };
}

function isAction(text: string): text is AuditAction {
  return AUDIT_ACTIONS.some((known) => known === text);
}
