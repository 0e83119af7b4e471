import { html, type Html } from "@devplat/web-kit";
import type { RemoteView } from "../../../../remote-view.ts";
import { remoteUrl } from "./links.ts";

/** How the host proves who it is: its pinned key, or a certificate of a configured authority. */
export function hostKeyCard(remote: RemoteView): Html {
  const { host, host_key: key } = remote;
  return html`<section class="card stack" aria-labelledby="host-key-heading">
    <h2 id="host-key-heading">Host key</h2>
    ${trustText(remote)}
    ${
      key === null
        ? ""
        : html`<dl class="facts keys">
              <div>
                <dt>Type</dt>
                <dd>${key.type}</dd>
              </div>
              <div class="wide">
                <dt>Fingerprint</dt>
                <dd><code class="fingerprint">${key.fingerprint}</code></dd>
              </div>
            </dl>
            <details id="full-key-${Buffer.from(key.fingerprint).toString("hex")}" hx-morph-skip>
              <summary>Show the full key</summary>
              <pre class="code long" tabindex="0" aria-label="Full key">${key.key}</pre>
            </details>`
    }
    <form class="form-actions" method="post" action="${remoteUrl(host)}">
      <button type="submit" name="action" value="repin">
        ${key === null ? "Ask the host for its key" : "Ask the host for its key again"}
      </button>
    </form>
  </section>`;
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
