import type { OwnAddress } from "../../own-address.ts";
import { cliPage } from "./cli-page.ts";
import { docsPage, type ListedOperation } from "./docs-page.ts";
import type { Pages } from "../common/pages.ts";

export interface HelpRoutes {
  readonly pages: Pages;
  readonly address: OwnAddress;
  /** Address of the code host. */
  readonly hostUrl: string;
  /** Operations of the API. */
  readonly operations: readonly ListedOperation[];
}

/** Help for users of the API and the command line. It has no secret, so it needs no sign-in. */
export function addHelpRoutes({ pages, address, hostUrl, operations }: HelpRoutes): void {
  pages.open("/docs", () => docsPage({ operations, baseUrl: address.baseUrl }));
  pages.open("/cli", () => cliPage({ baseUrl: address.baseUrl, hostUrl }));
}
