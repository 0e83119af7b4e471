import { html, type Html } from "@devplat/web-kit";
import type { RemoteView } from "../../../../remote-view.ts";
import { remoteUrl } from "./links.ts";

type HostKey = NonNullable<RemoteView["host_key"]>;

/** How the host proves who it is: its pinned key, or a certificate of a configured authority. */
export function hostKeyCard(remote: RemoteView): Html {
  const { host, host_key: key } = remote;
  return html`<section class="card stack" aria-labelledby="host-key-heading">
    <h2 id="host-key-heading">Host key</h2>
    ${trustText(remote)} ${key === null ? "" : keyFacts(key)}
    ${remote.hop_keys.length === 0 ? "" : hopKeys(remote.hop_keys)}
    <form class="form-actions" method="post" action="${remoteUrl(host)}">
      <button type="submit" name="action" value="repin">
        ${key === null ? "Ask the host for its key" : "Ask the host for its key again"}
      </button>
    </form>
  </section>`;
}

/** Type and fingerprint, and the whole key on demand. @param host of a jump host */
function keyFacts({ type, fingerprint, key }: HostKey, host?: string): Html {
  return html`<dl class="facts keys">
      ${
        host === undefined
          ? ""
          : html`<div>
              <dt>Jump host</dt>
              <dd class="wrap">${host}</dd>
            </div>`
      }
      <div>
        <dt>Type</dt>
        <dd>${type}</dd>
      </div>
      <div class="wide">
        <dt>Fingerprint</dt>
        <dd><code class="fingerprint">${fingerprint}</code></dd>
      </div>
    </dl>
    <details id="full-key-${Buffer.from(`${host ?? ""} ${fingerprint}`).toString("hex")}" hx-morph-skip>
      <summary>
        Show the full key${host === undefined ? "" : html`<span class="visually-hidden"> of ${host}</span>`}
      </summary>
      <pre class="code long" tabindex="0" aria-label="Full key${host === undefined ? "" : ` of ${host}`}">
${key}</pre>
    </details>`;
}

function hopKeys(keys: RemoteView["hop_keys"]): Html {
  return html`<h3>Jump hosts</h3>
    <p>These keys are pinned, too. The nearest host is first.</p>
    ${keys.map((key) => keyFacts(key, key.host))}`;
}

function trustText({ trust, state, host_key: key }: RemoteView): Html {
  if (trust === "ca") {
    return html`<p>
      A configured authority (<code>ssh.certificate_authorities</code>) vouches for this host.
      ${key === null ? "Its key is not pinned." : "Its plain key is pinned, too."}
    </p>`;
  }
  if (trust === "none" && (state === "connected" || key !== null)) {
    return html`<p class="banner bad">
      Host keys are not checked, because <code>ssh.insecure_ignore_host_key</code> is on. Somebody between
      this host and that one can read and change everything.
    </p>`;
  }
  if (trust === "pin") return html`<p>The daemon connects only to a host that has this key.</p>`;
  return html`<p class="banner warn">
    The daemon does not know the key of this host. Ask the host for it, and confirm it.
  </p>`;
}
