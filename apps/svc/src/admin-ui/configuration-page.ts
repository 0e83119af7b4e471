import type { Identity } from "../identity/principal.ts";
import { html, type Assets, type Html } from "@devplat/web-kit";
import { layout } from "./layout.ts";

export interface ConfigurationPageOptions {
  readonly assets: Assets;
  readonly version: string;
  readonly identity: Identity;
  /** The configuration in effect as YAML; secrets are masked already. */
  readonly yaml: string;
}

/** The "Configuration" section: what is in effect, to look at. */
export function configurationPage({ assets, version, identity, yaml }: ConfigurationPageOptions): Html {
  return layout({
    title: "Configuration",
    assets,
    version,
    identity,
    section: "/admin/configuration",
    content: html`<div>
        <h1>Configuration</h1>
        <p class="lead">
          What is in effect, defaults included; secrets are masked. It is changed in the configuration file
          and the environment. SIGHUP reads the file again, and the log names what needs a restart.
        </p>
      </div>
      <section class="card" aria-label="Configuration in effect">
        <pre class="code" tabindex="0"><code>${yaml}</code></pre>
      </section>`,
  });
}
