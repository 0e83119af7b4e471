import type { LiveConfig } from "../../config/live-config.ts";
import { printConfig } from "../../config/print.ts";
import { configurationPage } from "./configuration-page.ts";
import type { Pages } from "../common/pages.ts";

export interface ConfigurationRoutes {
  readonly pages: Pages;
  readonly live: LiveConfig;
}

/** The configuration in effect, for admins. */
export function addConfigurationRoutes({ pages, live }: ConfigurationRoutes): void {
  pages.get("/admin/configuration", "admin", async ({ show }) =>
    show(configurationPage(printConfig(live.current))),
  );
}
