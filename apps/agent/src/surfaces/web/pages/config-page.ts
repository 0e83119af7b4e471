import { html, type Assets, type Html } from "@devplat/web-kit";
import type { AgentStatus } from "../../../status.ts";
import type { ConfigurationView } from "../../../config/configuration-view.ts";
import { sitePage } from "./layout.ts";
import { notices } from "./notices.ts";

/** `/ui/config/`: the configuration in force, with defaults, without credentials. */
export function configPage(assets: Assets, status: AgentStatus, configuration: ConfigurationView): Html {
  const content = html`${notices(status)}
    <div class="spread">
      <h1>Effective configuration</h1>
      <div class="cluster">
        <a class="button" href="/api/v1/config/download?format=yaml" download>Download YAML</a>
        <a class="button" href="/api/v1/config/download?format=reg" download>Download registry file</a>
      </div>
    </div>
    <p class="muted">
      With every default, without credentials. Read from
      ${configuration.sources.map((source, at) => html`${at === 0 ? "" : ", "}<code>${source}</code>`)}.
    </p>
    <pre class="code long" tabindex="0" aria-label="Configuration">${configuration.yaml()}</pre>`;
  return sitePage(assets, status, "Config", content, { section: "Config" });
}
