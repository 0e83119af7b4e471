import type { AuditStore } from "../audit/audit-store.ts";
import type { Assets } from "@devplat/web-kit";
import { auditQuerySchema, storeQuery } from "../admin-api/audit.ts";
import { auditPage } from "./audit-page.ts";
import type { Pages } from "./pages.ts";

/** Records on one page. */
const PAGE_SIZE = "50";
const FILTERS = ["action", "outcome", "actor", "target"] as const;

export interface AuditRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly auditStore: AuditStore;
}

/** The audit trail for admins; the filters are in the address, so that a look can be shared. */
export function addAuditRoutes({ pages, assets, version, auditStore }: AuditRoutes): void {
  pages.get("/admin/audit", true, async (context, identity) => {
    const values: Record<string, string> = {};
    for (const name of FILTERS) {
      const value = context.req.query(name)?.trim() ?? "";
      if (value !== "") values[name] = value;
    }
    const cursor = context.req.query("cursor");
    const query = auditQuerySchema.safeParse({
      ...values,
      limit: PAGE_SIZE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    const shown = { assets, version, identity, isLater: cursor !== undefined };
    if (!query.success) {
      const message = "The filter is not one: choose from the lists.";
      const page = auditPage({
        ...shown,
        form: { values, faults: {}, message },
        records: [],
        older: undefined,
      });
      return pages.show(context, page, 422);
    }
    const { records, next } = await auditStore.query(storeQuery(query.data));
    const older =
      next === undefined
        ? undefined
        : `/admin/audit?${new URLSearchParams({ ...values, cursor: next }).toString()}`;
    return pages.show(context, auditPage({ ...shown, form: { values, faults: {} }, records, older }));
  });
}
