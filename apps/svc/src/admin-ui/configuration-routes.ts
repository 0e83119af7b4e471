import type { Assets } from "@devplat/web-kit";
import type { LiveConfig } from "../config/live-config.ts";
import { printConfig } from "../config/print.ts";
import { configurationPage } from "./configuration-page.ts";
import type { Pages } from "./pages.ts";

export interface ConfigurationRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly live: LiveConfig;
}

/** What is in effect, for admins to look at. */
export function addConfigurationRoutes({ pages, assets, version, live }: ConfigurationRoutes): void {
  pages.get("/admin/configuration", true, async (context, identity) =>
    pages.show(context, configurationPage({ assets, version, identity, yaml: printConfig(live.current) })),
  );
}
