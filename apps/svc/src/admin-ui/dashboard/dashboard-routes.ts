import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { SECURITY_HEADERS } from "@devplat/web-kit";
import { requestFacts } from "../../http/request/management-client.ts";
import type { Authenticator } from "../../identity/login/authenticator.ts";
import { DASHBOARD_STREAM, dashboardPage } from "./dashboard-page.ts";
import type { LiveDashboard } from "./live-dashboard.ts";
import type { Pages } from "../common/pages.ts";

export interface DashboardRoutes {
  readonly pages: Pages;
  readonly dashboard: LiveDashboard;
  readonly authenticator: Authenticator;
}

/** The start page, and the stream that keeps it current; for admins. */
export function addDashboardRoutes({ pages, dashboard, authenticator }: DashboardRoutes): void {
  pages.get("/admin", "admin", async ({ show }) => show(dashboardPage(await dashboard.state())));

  pages.get(DASHBOARD_STREAM, "admin", async ({ context, actor, redirect }) => {
    // Opened as a page, it would be one that never ends.
    if (context.req.header("sec-fetch-mode") === "navigate") return redirect("/admin");
    const facts = requestFacts(context);
    const { incoming, outgoing } = context.env as HttpBindings;
    if (incoming.method !== "GET") return context.body(null, 200);
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) outgoing.setHeader(name, value);
    await dashboard.open(outgoing, actor.sessionId, async () => {
      const caller = await authenticator.identify(facts);
      return caller.kind === "identity" && caller.identity.role === "admin";
    });
    return RESPONSE_ALREADY_SENT;
  });
}
