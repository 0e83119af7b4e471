import type { Clock } from "@devplat/base";
import type { Assets } from "@devplat/web-kit";
import type { Accounts } from "../identity/accounts/accounts.ts";
import { clientOf } from "../http/request/management-client.ts";
import { recordDisconnect } from "../admin-api/sessions.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { MadeWith } from "../administration/made-with.ts";
import type { SessionEnd } from "../administration/session-end.ts";
import type { Sessions } from "../identity/login/sessions.ts";
import type { WebLogin } from "../identity/login/web-login.ts";
import type { Store } from "../storage/store.ts";
import { accountPage } from "./account-page.ts";
import { pageNumber, pagedList } from "./paged-list.ts";
import type { Pages } from "./pages.ts";
import { sessionEnded } from "./sessions-table.ts";
import { usersPage, type SessionItem } from "./users-page.ts";

export interface AccountRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly sessions: Sessions;
  readonly sessionEnd: SessionEnd;
  readonly madeWith: Pick<MadeWith, "count">;
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
  const { pages, assets, version, sessions, sessionEnd, madeWith, accounts, users } = routes;
  const { webLogin, hostName, audit, clock } = routes;

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
      tokens: await madeWith.count(own.map(({ record }) => record.id)),
      now: clock.now(),
      done: doneText(context.req.query()),
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
    ["/ui/sessions/:id/end", "/ui", false],
    ["/admin/users/sessions/:id/end", "/admin/users", true],
  ] as const) {
    pages.post(path, adminOnly, async (context, identity, form) => {
      const tokens = form["tokens"] === "revoke" || form["tokens"] === "keep" ? form["tokens"] : undefined;
      const id = context.req.param("id") ?? "";
      const { record, revoked } = await sessionEnd.end(identity, clientOf(context), id, tokens);
      const done = `${back}?done=ended&revoked=${revoked}#done`;
      return context.redirect(record.id === identity.sessionId ? "/ui" : done, 303);
    });
  }

  pages.get("/admin/users", true, async (context, identity) => {
    const [all, listed] = await Promise.all([users.list(), sessions.list(identity, true)]);
    const query = context.req.query();
    const { search } = query;
    const counts = new Map<string, number>();
    for (const { record } of listed) counts.set(record.userId, (counts.get(record.userId) ?? 0) + 1);
    const items: SessionItem[] = listed.map((each) => ({ ...each, id: each.record.id }));
    const shown = pagedList(items, ({ identity: of }) => of.login, {
      search,
      wanted: pageNumber(query["sessions"]),
    });
    const found = pagedList(all, ({ login }) => login, { search, wanted: pageNumber(query["page"]) });
    const page = usersPage({
      assets,
      version,
      identity,
      users: {
        ...found,
        items: found.items.map((user) => ({
          ...user,
          isAdmin: sessions.isAdmin(user.login),
          sessions: counts.get(user.id) ?? 0,
        })),
      },
      sessions: shown,
      tokens: await madeWith.count(shown.items.map(({ id }) => id)),
      now: clock.now(),
      done: doneText(query),
    });
    return pages.show(context, page);
  });
}

/** What was just done, as the address says. */
function doneText(query: Readonly<Record<string, string>>): string | undefined {
  if (query["done"] === "ended") return sessionEnded(query["revoked"]);
  if (query["done"] === "disconnected")
    return "The account is disconnected: its credential was removed here.";
  return undefined;
}
