import { html } from "@devplat/web-kit";
import type { Page } from "../common/layout.ts";

/** The "Configuration" section. @param yaml the configuration in effect, with masked secrets */
export function configurationPage(yaml: string): Page {
  return {
    title: "Configuration",
    section: "/admin/configuration",
    lead: html`What is in effect, defaults included; secrets are masked. It is changed in the configuration
    file and the environment. SIGHUP reads the file again, and the log names what needs a restart.`,
    content: html`<section class="card" aria-label="Configuration in effect">
      <pre class="code" tabindex="0"><code>${yaml}</code></pre>
    </section>`,
  };
}
