import { formatDuration } from "@devplat/base";
import { html, type Html } from "@devplat/web-kit";
import type { SshAgentIdentityView, SshAgentStatus } from "../../../../ssh-agent-view.ts";
import { dataCell, dataRow, dataTable } from "../data-table.ts";
import { timeText } from "../time-text.ts";
import { unlockUrl } from "./links.ts";

type Source = SshAgentStatus["sources"][number];

const SOURCE_WORDS: Readonly<Record<Source["source"], string>> = {
  kv: "secrets",
  ca: "certificate authority",
  enrolments: "enrolments",
  relay: "another agent",
};

const STATE: Readonly<
  Record<SshAgentIdentityView["state"], { readonly mark: string; readonly word: string }>
> = {
  ready: { mark: "good", word: "Ready" },
  unlocked: { mark: "good", word: "Unlocked" },
  "needs-passphrase": { mark: "warn", word: "Needs passphrase" },
  locked: { mark: "idle", word: "Locked" },
  hidden: { mark: "idle", word: "Hidden" },
};

const MINUTE_MS = 60_000;

/** The identities of a source, and what is wrong with it. */
export function identityList({ name, source, error, identities }: Source, now: string): Html {
  const heading = `source-${Buffer.from(name).toString("hex")}`;
  return html`<section class="card flush" aria-labelledby="${heading}">
    <div class="card-head">
      <h2 class="wrap" id="${heading}">${name}</h2>
      <span class="badge">${SOURCE_WORDS[source]}</span>
    </div>
    ${error === null ? "" : html`<p class="card-note error wrap">${error}</p>`}
    ${
      identities.length === 0
        ? html`<p class="empty">No identities.</p>`
        : dataTable(
            "identities",
            heading,
            ["Key", "State", "Only for", "Last use"],
            identities.map((identity) => row(identity, now)),
          )
    }
  </section>`;
}

function row(identity: SshAgentIdentityView, now: string): Html {
  const { comment, type, fingerprint, state } = identity;
  const { mark, word } = STATE[state];
  const unlock = html`<div>
    <a href="${unlockUrl(fingerprint)}">Unlock<span class="visually-hidden"> ${comment}</span></a>
  </div>`;
  return dataRow(
    html`${comment}
      <div class="small muted">${type}</div>
      <div class="small muted"><code class="fingerprint">${fingerprint}</code></div>`,
    [
      dataCell(
        "State",
        html`<span class="status ${mark}">${word}</span>
          ${until("Certificate until", identity.certificate_expires_at, now)}
          ${until("Until", identity.unlocked_until, now)} ${state === "needs-passphrase" ? unlock : ""}`,
      ),
      dataCell("Only for", restrictions(identity), "wrap"),
      dataCell("Last use", lastUse(identity, now), "wrap"),
    ],
  );
}

/** An end, with the time that remains. */
function until(words: string, end: string | null, now: string): Html | string {
  if (end === null) return "";
  return html`<div class="small muted">${words} ${timeText(end, now)}, ${remaining(end, now)}</div>`;
}

/** Time until an end, in whole minutes. */
export function remaining(end: string, now: string): string {
  const left = Date.parse(end) - Date.parse(now);
  if (left <= 0) return "over";
  const minutes = Math.floor(left / MINUTE_MS) * MINUTE_MS;
  return minutes === 0 ? "less than 1m left" : `${formatDuration(minutes)} left`;
}

function restrictions({ hosts, via, namespaces }: SshAgentIdentityView): Html {
  const lines = [
    ["hosts", hosts],
    ["via", via],
    ["signatures for", namespaces],
  ] as const;
  const shown = lines.flatMap(([words, list]) =>
    list === null ? [] : [html`<div class="small">${words} <code>${list.join(", ")}</code></div>`],
  );
  return shown.length === 0 ? html`<span class="muted">no limit</span>` : html`${shown}`;
}

function lastUse({ last_use: use, signatures }: SshAgentIdentityView, now: string): Html {
  if (use === null) return html`<span class="muted">not used yet</span>`;
  const { at, destination, forwarded, program } = use;
  return html`${timeText(at, now)}
    <div class="small">
      ${destination === null ? "" : html`for ${destination}`} ${program === null ? "" : html`by ${program}`}
      ${forwarded ? html`<span class="badge warn">forwarded</span>` : ""}
    </div>
    <div class="small muted">${signatures === 1 ? "1 signature" : `${signatures} signatures`}</div>`;
}
