import { html, type Html } from "@devplat/web-kit";
import type { ListedSession } from "../../identity/login/sessions.ts";
import type { UserState } from "../../administration/sessions/users.ts";
import { doneBanner } from "../common/form.ts";
import { formatAgo, formatTime } from "../common/format.ts";
import { listCard } from "../common/card.ts";
import type { Page } from "../common/layout.ts";
import { dataTable } from "../common/table.ts";
import { listCount, listPager, listSearch, type PagedList } from "../common/paged-list.ts";
import { sessionsTable } from "./sessions-table.ts";

/** A session as an item of a list. */
export type SessionItem = ListedSession & { readonly id: string };

export interface ShownUser extends UserState {
  /** Live sessions. */
  readonly sessions: number;
}

export interface UsersPageOptions {
  /** Id of the session that shows the page. */
  readonly current: string;
  readonly users: PagedList<ShownUser>;
  /** Under the same search. */
  readonly sessions: PagedList<SessionItem>;
  /** Number of valid tokens that were made with each session shown, by its id. */
  readonly tokens: ReadonlyMap<string, number>;
  readonly now: number;
  /** The action that was just carried out, in words. */
  readonly done?: string | undefined;
}

const PATH = "/admin/users";

/** The "Users and sessions" section. */
export function usersPage(options: UsersPageOptions): Page {
  const { current, users, sessions, tokens, now } = options;
  const search = users.search === "" ? {} : { search: users.search };
  const pageOf = (name: string, page: number, part: string): string =>
    `${PATH}?${new URLSearchParams({ ...search, [name]: String(page) }).toString()}#${part}`;
  return {
    title: "Users and sessions",
    section: PATH,
    lead: html`Everybody who ever signed in. Admins are named in the configuration (<code>admins</code>).`,
    content: html`${doneBanner(options.done)}
    ${listCard({
      id: "users",
      title: "Users",
      aside: html`<div class="cluster">
        ${listSearch(users, { path: PATH, by: "login" })} ${listCount(users)}
      </div>`,
      content: html`${users.items.length === 0 ? html`<p class="empty">No login matches the search.</p>` : usersTable(users.items, now)}
      ${listPager(users, "Pages of users", (page) => pageOf("page", page, "users"))}`,
    })}
    ${listCard({
      id: "sessions",
      title: "Sessions",
      aside: listCount(sessions),
      content: html`${
        sessions.items.length === 0
          ? html`<p class="empty">None of these users is signed in.</p>`
          : sessionsTable({
              sessions: sessions.items,
              tokens,
              withUser: true,
              current,
              path: "/admin/users/sessions",
              now,
            })
      }
      ${listPager(sessions, "Pages of sessions", (page) => pageOf("sessions", page, "sessions"))}`,
    })}`,
  };
}

function usersTable(users: readonly ShownUser[], now: number): Html {
  return dataTable({
    caption: "Users with their role and last login",
    columns: ["Login", "Role", "First seen", "Last login", "Sessions"],
    rows: users.map(
      (user) =>
        html`<tr>
          <th scope="row" class="wrap">${user.login}</th>
          <td data-label="Role">
            <span>${user.isAdmin ? html`<span class="badge accent">admin</span>` : "user"}</span>
          </td>
          <td data-label="First seen" class="nowrap">${formatTime(user.createdAt)}</td>
          <td data-label="Last login" class="nowrap">${formatAgo(user.lastLoginAt, now)}</td>
          <td data-label="Sessions">${user.sessions}</td>
        </tr>`,
    ),
  });
}
