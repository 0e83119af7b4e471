import { html, type Html } from "@devplat/web-kit";
import type { ListedSession } from "../../identity/login/sessions.ts";
import { breakableAddress, formatAgo, formatProgram, formatTime } from "../common/format.ts";
import { dataTable } from "../common/table.ts";

export interface SessionsTableOptions {
  readonly sessions: readonly ListedSession[];
  /** Number of valid tokens that were made with each session, by its id. */
  readonly tokens: ReadonlyMap<string, number>;
  /** Whether to show the user of each session. */
  readonly withUser: boolean;
  /** Id of the session that shows the page. */
  readonly current: string;
  /** Where the forms post to: `{path}/{id}/end`. */
  readonly path: string;
  readonly now: number;
}

/** `1 token` */
function tokensText(count: number): string {
  return `${count} ${count === 1 ? "token" : "tokens"}`;
}

/** Message after the end of a session. @param revoked number of revoked tokens, from the address */
export function sessionEnded(revoked: string | undefined): string {
  const count = Number(/^\d{1,6}$/.exec(revoked ?? "")?.[0] ?? 0);
  if (count === 0) return "The session was ended.";
  return `The session was ended, and ${count === 1 ? "the token" : `the ${count} tokens`} made with it revoked.`;
}

/** Sessions with a button to end each, and what was made with it. */
export function sessionsTable({
  sessions,
  tokens,
  withUser,
  current,
  path,
  now,
}: SessionsTableOptions): Html {
  return dataTable({
    caption: "Sessions with where they come from and when they end",
    columns: [...(withUser ? ["User"] : []), "Program", "From", "Began", "Last seen", "Tokens"],
    actions: true,
    rows: sessions.map(({ record, identity }) => {
      const program = formatProgram(record.userAgent);
      const made = tokens.get(record.id) ?? 0;
      const which = `the session of ${identity.login} from ${record.createdIp ?? "unknown"}, ${program}`;
      const device =
        identity.device === undefined
          ? ""
          : html` <span class="badge">approved program${identity.role === "admin" ? ", admin" : ""}</span>`;
      const badge = record.id === current ? html` <span class="badge accent">this one</span>` : "";
      return html`<tr>
        ${
          withUser
            ? html`<th scope="row" class="wrap">
                  ${identity.login} <span class="badge">${identity.role}</span>
                </th>
                <td data-label="Program" class="wrap small"><span>${program}${device}${badge}</span></td>`
            : html`<th scope="row" class="wrap small">${program}${device}${badge}</th>`
        }
        <td data-label="From">
          <span class="mono small">${breakableAddress(record.createdIp ?? "unknown")}</span>
        </td>
        <td data-label="Began" class="nowrap">
          <div>
            ${formatTime(record.createdAt)}
            <div class="small muted">ends ${formatTime(record.expiresAt)}</div>
          </div>
        </td>
        <td data-label="Last seen" class="nowrap">${formatAgo(record.lastSeenAt, now)}</td>
        <td data-label="Tokens">${made}</td>
        <td>
          <form class="actions" method="post" action="${path}/${record.id}/end">
            ${
              made === 0
                ? html`<button class="small danger" aria-label="End ${which}">End</button>`
                : html`<button
                      class="small danger"
                      name="tokens"
                      value="revoke"
                      aria-label="End ${which}, and revoke its ${tokensText(made)}"
                    >
                      End, and revoke ${tokensText(made)}
                    </button>
                    <button class="small" name="tokens" value="keep" aria-label="End only ${which}">
                      End only
                    </button>`
            }
          </form>
        </td>
      </tr>`;
    }),
  });
}
