import { auditQuerySchema, type AuditLog } from "../../administration/read-audit-log.ts";
import { auditPage } from "./audit-page.ts";
import type { Pages } from "../common/pages.ts";

/** Records on one page. */
const PAGE_SIZE = "50";
const FILTERS = ["action", "outcome", "actor", "target"] as const;

export interface AuditRoutes {
  readonly pages: Pages;
  readonly auditLog: AuditLog;
}

/** The audit trail for admins. The filters are in the address, so that a view can be shared. */
export function addAuditRoutes({ pages, auditLog }: AuditRoutes): void {
  pages.get("/admin/audit", "admin", async ({ actor, query: { cursor, ...given }, show }) => {
    const values: Record<string, string> = {};
    for (const name of FILTERS) {
      const value = given[name]?.trim() ?? "";
      if (value !== "") values[name] = value;
    }
    const page = cursor === undefined ? {} : { cursor };
    const isLater = cursor !== undefined;
    const query = auditQuerySchema.safeParse({ ...values, ...page, limit: PAGE_SIZE });
    if (!query.success) {
      const form = { values, faults: {}, message: "The filter is not valid: choose from the lists." };
      return show(auditPage({ form, records: [], older: undefined, isLater }), 422);
    }
    const { records, next } = await auditLog.list(actor, query.data);
    const older =
      next === undefined
        ? undefined
        : `/admin/audit?${new URLSearchParams({ ...values, cursor: next }).toString()}`;
    return show(auditPage({ form: { values, faults: {} }, records, older, isLater }));
  });
}
