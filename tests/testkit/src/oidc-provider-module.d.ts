/** The part of the package's interface that the kit uses; it brings no types of its own. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    callback(): RequestListener;
    readonly AccessToken: { find(token: string): Promise<{ readonly accountId: string } | undefined> };
  }
}
