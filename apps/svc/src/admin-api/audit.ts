import { z } from "zod";
import { auditQuerySchema, type AuditLog } from "../administration/read-audit-log.ts";
import { AUDIT_ACTIONS } from "../audit/audit-event.ts";
import type { AuditRecord } from "../audit/audit-store.ts";
import type { OwnAddress } from "../own-address.ts";
import { isoTime, operation, type Operation } from "./operation.ts";
import { nextPage } from "./paging.ts";

const PATH = "/api/audit";

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

/** Reading the audit trail. */
export function auditOperations(audit: AuditLog, address: OwnAddress): Operation[] {
  return [
    operation({
      method: "GET",
      path: PATH,
      id: "listAuditRecords",
      tag: "Audit",
      summary: "Who did what, when, from where, with what outcome",
      description:
        "Newest first. A `Link` header leads to the next page. A record is listed within seconds of the action.",
      access: "admin",
      query: auditQuerySchema,
      result: z.array(auditRecordSchema),
      async handle({ actor, query }) {
        const { records, next } = await audit.list(actor, query);
        const { cursor: _, ...rest } = query;
        const headers =
          next === undefined ? {} : nextPage(`${address.baseUrl}${PATH}`, { ...rest, cursor: next });
        return { headers, body: records.map(auditView) };
      },
    }),
  ];
}

/** A record as the API gives it. */
function auditView(record: AuditRecord): z.output<typeof auditRecordSchema> {
  return {
    id: record.id,
    at: isoTime(record.at),
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
