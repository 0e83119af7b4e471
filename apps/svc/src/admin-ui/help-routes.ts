import type { Assets } from "@devplat/web-kit";
import type { Operation } from "../admin-api/operation.ts";
import type { OwnAddress } from "../own-address.ts";
import { cliPage } from "./cli-page.ts";
import { docsPage } from "./docs-page.ts";
import type { Pages } from "./pages.ts";

export interface HelpRoutes {
  readonly pages: Pages;
  readonly assets: Assets;
  readonly version: string;
  readonly address: OwnAddress;
  /** Address of the code host. */
  readonly hostUrl: string;
  /** Those of the API. */
  readonly operations: readonly Operation[];
}

/** Pages for whoever wants to use the service by program; nothing in them is a secret, and no sign-in is needed. */
export function addHelpRoutes({ pages, assets, version, address, hostUrl, operations }: HelpRoutes): void {
  pages.open("/docs", async (context, identity) => {
    const { baseUrl } = address;
    return pages.show(context, docsPage({ assets, version, identity, operations, baseUrl }));
  });
  pages.open("/cli", async (context, identity) => {
    const { baseUrl } = address;
    return pages.show(context, cliPage({ assets, version, identity, baseUrl, hostUrl }));
  });
}
