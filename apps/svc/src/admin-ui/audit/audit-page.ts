import type { AuditRecord } from "../../audit/audit-store.ts";
import { html, type Html } from "@devplat/web-kit";
import { AUDIT_ACTIONS } from "../../audit/audit-event.ts";
import { failureBanner, selectField, textField, type FormState } from "../common/form.ts";
import { breakableAddress, breakableName, formatInstant } from "../common/format.ts";
import { listCard } from "../common/card.ts";
import type { Page } from "../common/layout.ts";
import { dataTable } from "../common/table.ts";

export interface AuditPageOptions {
  /** The filters that were asked for, with what is wrong with them. */
  readonly form: FormState;
  readonly records: readonly AuditRecord[];
  /** Address of the page with older records; undefined: there are none. */
  readonly older: string | undefined;
  /** Whether the page is not the newest. */
  readonly isLater: boolean;
}

/** Colours of outcomes; the word is always there, too. */
const TONES = { allowed: "good", denied: "warn", failed: "bad" } as const;

/** The "Audit" section. */
export function auditPage(options: AuditPageOptions): Page {
  const { form, records, older } = options;
  const isFiltered = Object.values(form.values).some((value) => value !== "");
  return {
    title: "Audit",
    section: "/admin/audit",
    lead: html`Who did what, when, from where, and with what outcome. Newest first; a record is here within
    seconds.`,
    content: html`<section class="card" aria-labelledby="filter-heading">
        <h2 id="filter-heading">Filter</h2>
        ${failureBanner(form.message)}
        <form class="fields" method="get" action="/admin/audit">
          ${selectField({
            id: "audit-action",
            name: "action",
            label: "Action",
            form,
            choices: [["", "any"], ...AUDIT_ACTIONS.map((action) => [action, action] as const)],
          })}
          ${selectField({
            id: "audit-outcome",
            name: "outcome",
            label: "Outcome",
            form,
            choices: [["", "any"], ...Object.keys(TONES).map((outcome) => [outcome, outcome] as const)],
          })}
          ${textField({ id: "audit-actor", name: "actor", label: "Login", form })}
          ${textField({ id: "audit-target", name: "target", label: "Target", unit: "(name or id)", form })}
          <div class="form-actions">
            <button class="primary">Show</button>
            ${isFiltered ? html`<a class="button" href="/admin/audit">Clear</a>` : ""}
          </div>
        </form>
      </section>
      ${listCard({
        id: "records-heading",
        title: "Records",
        aside: options.isLater ? html`<a class="button small" href="/admin/audit">Newest</a>` : "",
        content: html`${
          records.length === 0
            ? html`<p class="empty">
                ${isFiltered ? "No record fits the filter." : "Nothing has happened yet."}
              </p>`
            : recordsTable(records)
        }
        ${older === undefined ? "" : html`<p class="pager"><a class="button" href="${older}">Older</a></p>`}`,
      })}`,
  };
}

/** `token.created`, which may break behind the dot. */
function breakableAction(action: string): Html {
  const [subject = "", verb = ""] = action.split(".");
  return html`${subject}.<wbr />${verb}`;
}

function recordsTable(records: readonly AuditRecord[]): Html {
  return dataTable({
    caption: "Audit records, newest first",
    columns: ["When (UTC)", "Action", "Outcome", "Who", "Target", "From", "More"],
    rows: records.map(
      ({ at, action, outcome, actor, target, remoteAddress, details }) =>
        html`<tr>
          <th scope="row" class="nowrap small">
            <time datetime="${new Date(at).toISOString()}">${formatInstant(at)}</time>
          </th>
          <td data-label="Action"><code>${breakableAction(action)}</code></td>
          <td data-label="Outcome"><span class="badge ${TONES[outcome]}">${outcome}</span></td>
          <td data-label="Who" class="wrap">
            <span
              >${actor.login ?? ""} <span class="small muted">${actor.kind.replaceAll("_", " ")}</span></span
            >
          </td>
          <td data-label="Target" class="wrap target"><span>${breakableName(target ?? "")}</span></td>
          <td data-label="From">
            <span class="mono small">${breakableAddress(remoteAddress ?? "")}</span>
          </td>
          <td data-label="More" class="wrap small more">
            <span
              >${Object.entries(details ?? {})
                .map(([name, value]) => `${name}: ${String(value).replaceAll(",", ", ")}`)
                .join(", ")}</span
            >
          </td>
        </tr>`,
    ),
  });
}
