import type { Clock } from "@devplat/base";
import type { SessionUseCases } from "../../administration/sessions/sessions.ts";
import type { Users } from "../../administration/sessions/users.ts";
import { accountPage } from "./account-page.ts";
import { pageNumber, pagedList } from "../common/paged-list.ts";
import type { Pages } from "../common/pages.ts";
import { sessionEnded } from "./sessions-table.ts";
import { usersPage } from "./users-page.ts";

export interface AccountRoutes {
  readonly pages: Pages;
  readonly sessions: SessionUseCases;
  readonly users: Users;
  /** Whether accounts of the code host can sign in. */
  readonly canConnect: boolean;
  /** Name of the code host. */
  readonly hostName: string;
  readonly clock: Clock;
}

/** A user's own account and sessions, and for admins those of all. */
export function addAccountRoutes(routes: AccountRoutes): void {
  const { pages, sessions, users, canConnect, hostName, clock } = routes;

  pages.get("/ui", "user", async ({ actor, query, show }) => {
    const [account, own] = await Promise.all([sessions.accountState(actor), sessions.list(actor)]);
    return show(
      accountPage({
        identity: actor,
        account,
        hostName,
        canConnect,
        sessions: own,
        tokens: await sessions.tokenCounts(own),
        now: clock.now(),
        done: doneText(query),
      }),
    );
  });

  pages.post("/ui/account/disconnect", "user", async ({ actor, redirect }) => {
    await sessions.disconnectAccount(actor);
    return redirect("/ui?done=disconnected#done");
  });

  for (const [path, back, access] of [
    ["/ui/sessions/:id/end", "/ui", "user"],
    ["/admin/users/sessions/:id/end", "/admin/users", "admin"],
  ] as const) {
    pages.post(path, access, async ({ actor, id, form, redirect }) => {
      const tokens = form["tokens"] === "revoke" || form["tokens"] === "keep" ? form["tokens"] : undefined;
      const revoked = await sessions.end(actor, id, tokens);
      return redirect(id === actor.sessionId ? "/ui" : `${back}?done=ended&revoked=${revoked}#done`);
    });
  }

  pages.get("/admin/users", "admin", async ({ actor, query, show }) => {
    const [all, running] = await Promise.all([users.list(actor), sessions.list(actor, true)]);
    const { search } = query;
    const counts = new Map<string, number>();
    for (const { record } of running) counts.set(record.userId, (counts.get(record.userId) ?? 0) + 1);
    const found = pagedList(
      all.map((user) => ({ ...user, sessions: counts.get(user.id) ?? 0 })),
      ({ login }) => login,
      { search, wanted: pageNumber(query["page"]) },
    );
    const items = running.map((each) => ({ ...each, id: each.record.id }));
    const shown = pagedList(items, ({ identity }) => identity.login, {
      search,
      wanted: pageNumber(query["sessions"]),
    });
    return show(
      usersPage({
        current: actor.sessionId,
        users: found,
        sessions: shown,
        tokens: await sessions.tokenCounts(shown.items),
        now: clock.now(),
        done: doneText(query),
      }),
    );
  });
}

/** The result of the action before, as the address says. */
function doneText(query: Readonly<Record<string, string>>): string | undefined {
  if (query["done"] === "ended") return sessionEnded(query["revoked"]);
  if (query["done"] === "disconnected")
    return "The account is disconnected: its credential was removed here.";
  return undefined;
}
