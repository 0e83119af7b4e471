import type { Clock } from "@devplat/base";
import type { Assets } from "@devplat/web-kit";
import type { Accounts } from "../accounts/accounts.ts";
import { clientOf } from "../admin-api/client.ts";
import { recordDisconnect, recordEnd } from "../admin-api/sessions.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { Sessions } from "../login/sessions.ts";
import type { WebLogin } from "../login/web-login.ts";
import type { Store } from "../storage/store.ts";
import { accountPage } from "./account-page.ts";
import type { Pages } from "./pages.ts";
import { usersPage } from "./users-page.ts";

export interface AccountRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly sessions: Sessions;
  readonly accounts: Accounts;
  readonly users: Pick<Store["users"], "list">;
  /** Undefined: no OAuth client is configured. */
  readonly webLogin: WebLogin | undefined;
  /** Name of the code host. */
  readonly hostName: string;
  readonly audit: AuditTrail;
  readonly clock: Clock;
}

/** A user's own account and sessions, and for admins those of all. */
export function addAccountRoutes(routes: AccountRoutes): void {
  const { pages, assets, version, sessions, accounts, users, webLogin, hostName, audit, clock } = routes;

  pages.get("/ui", false, async (context, identity) => {
    const [account, own] = await Promise.all([
      accounts.state(identity.userId),
      sessions.list(identity, false),
    ]);
    const page = accountPage({
      assets,
      version,
      identity,
      account,
      hostName,
      canConnect: webLogin !== undefined,
      sessions: own,
      now: clock.now(),
      done: context.req.query("done"),
    });
    return pages.show(context, page);
  });

  pages.post("/ui/account/disconnect", false, async (context, identity) => {
    if (await accounts.disconnect(identity.userId)) {
      recordDisconnect(audit, identity, clientOf(context));
    }
    return context.redirect("/ui?done=disconnected#done", 303);
  });

  for (const [path, back, adminOnly] of [
    ["/ui/sessions/:id/end", "/ui?done=ended#done", false],
    ["/admin/users/sessions/:id/end", "/admin/users?done=ended#done", true],
  ] as const) {
    pages.post(path, adminOnly, async (context, identity) => {
      const ended = await sessions.revoke(identity, context.req.param("id") ?? "");
      recordEnd(audit, identity, ended, clientOf(context));
      return context.redirect(ended.id === identity.sessionId ? "/ui" : back, 303);
    });
  }

  pages.get("/admin/users", true, async (context, identity) => {
    const [all, listed] = await Promise.all([users.list(), sessions.list(identity, true)]);
    const page = usersPage({
      assets,
      version,
      identity,
      users: all.map((user) => ({ ...user, isAdmin: sessions.isAdmin(user.login) })),
      sessions: listed,
      now: clock.now(),
      done: context.req.query("done"),
    });
    return pages.show(context, page);
  });
}
