import { html, type Assets, type Html } from "@devplat/web-kit";
import type { Identity, ListedSession } from "../login/sessions.ts";
import type { UserRecord } from "../storage/store.ts";
import { doneBanner } from "./form.ts";
import { formatAgo, formatTime } from "./format.ts";
import { layout } from "./layout.ts";
import { sessionsTable } from "./sessions-table.ts";

export interface UsersPageOptions {
  readonly assets: Assets;
  readonly version: string;
  readonly identity: Identity;
  readonly users: readonly (UserRecord & { readonly isAdmin: boolean })[];
  readonly sessions: readonly ListedSession[];
  readonly now: number;
  readonly done?: string | undefined;
}

/** The "Users and sessions" section. */
export function usersPage(options: UsersPageOptions): Html {
  const { assets, version, identity, users, sessions, now } = options;
  return layout({
    title: "Users and sessions",
    assets,
    version,
    identity,
    section: "/admin/users",
    content: html`<div>
        <h1>Users and sessions</h1>
        <p class="lead">
          Everybody who ever signed in. Admins are named in the configuration (<code>admins</code>).
        </p>
      </div>
      ${doneBanner(options.done === "ended" ? "The session was ended." : undefined)}
      <section class="card flush" aria-labelledby="users-heading">
        <div class="card-head">
          <h2 id="users-heading">Users</h2>
          <span class="badge">${users.length}</span>
        </div>
        ${usersTable(users, sessions, now)}
      </section>
      <section class="card flush" aria-labelledby="sessions-heading">
        <div class="card-head">
          <h2 id="sessions-heading">Sessions</h2>
          <span class="badge">${sessions.length}</span>
        </div>
        ${sessionsTable({
          sessions,
          withUser: true,
          current: identity.sessionId,
          path: "/admin/users/sessions",
          now,
        })}
      </section>`,
  });
}

function usersTable(users: UsersPageOptions["users"], sessions: readonly ListedSession[], now: number): Html {
  const counts = new Map<string, number>();
  for (const { record } of sessions) counts.set(record.userId, (counts.get(record.userId) ?? 0) + 1);
  return html`<table class="table">
    <caption class="visually-hidden">
      Users with their role and last login
    </caption>
    <thead>
      <tr>
        <th scope="col">Login</th>
        <th scope="col">Role</th>
        <th scope="col">First seen</th>
        <th scope="col">Last login</th>
        <th scope="col">Sessions</th>
      </tr>
    </thead>
    <tbody>
      ${users.map(
        (user) =>
          html`<tr>
            <th scope="row" class="wrap">${user.login}</th>
            <td data-label="Role">
              <span>${user.isAdmin ? html`<span class="badge accent">admin</span>` : "user"}</span>
            </td>
            <td data-label="First seen" class="nowrap">${formatTime(user.createdAt)}</td>
            <td data-label="Last login" class="nowrap">${formatAgo(user.lastLoginAt, now)}</td>
            <td data-label="Sessions">${counts.get(user.id) ?? 0}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
