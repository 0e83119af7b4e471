import { html, type Html } from "@devplat/web-kit";
import type { SshAgentStatus } from "../../../../ssh-agent-view.ts";
import { timeText } from "../time-text.ts";
import { AGENT_PAGE } from "./links.ts";
import { passphraseInput } from "./unlock-card.ts";

type Question = SshAgentStatus["questions"][number];

/** A question that a signature waits for. Ids keep what is typed when the live stream replaces the part around it. */
export function questionCard(question: Question, now: string): Html {
  const { id, kind, identity, fingerprint, facts, expires_at: expires } = question;
  const name = `question-${Buffer.from(id).toString("hex")}`;
  const title = kind === "confirm" ? `May ${identity} be used?` : `Passphrase of ${identity}`;
  return html`<form
    class="card stack asks"
    id="${name}"
    method="post"
    action="${AGENT_PAGE}"
    autocomplete="off"
    aria-labelledby="${name}-heading"
  >
    <input type="hidden" name="question" value="${id}" />
    <h2 class="wrap" id="${name}-heading">${title}</h2>
    <p class="small"><code class="fingerprint">${fingerprint}</code></p>
    ${facts.length === 0 ? "" : factList(facts)}
    ${kind === "passphrase" ? passphraseInput(`${name}-passphrase`) : ""}
    <div class="form-actions">
      ${
        kind === "confirm"
          ? html`<button class="primary" type="submit" name="action" value="allow">Allow</button>`
          : html`<button class="primary" type="submit" name="action" value="passphrase">Unlock</button>`
      }
      <button type="submit" name="action" value="refuse" formnovalidate>Refuse</button>
    </div>
    <p class="hint">Without an answer it is refused at ${timeText(expires, now)}.</p>
  </form>`;
}

function factList(facts: Question["facts"]): Html {
  return html`<ul class="plain-list checked-facts">
    ${facts.map(
      ({ text, verified }) =>
        html`<li class="wrap">
          <span class="status ${verified ? "good" : "warn"}">${verified ? "verified" : "claimed"}</span>
          <span>${text}</span>
        </li>`,
    )}
  </ul>`;
}
