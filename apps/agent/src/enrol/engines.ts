import { hostname } from "node:os";
import type { Clock } from "@devplat/base";
import type { SecretStore } from "@devplat/secret-store";
import type { EnrolmentConfig } from "../config/sections/enrolment-section.ts";
import { Copy } from "./copy.ts";
import type { EnrolmentEngine } from "./engine.ts";
import { Jfrog } from "./jfrog.ts";
import { OauthDevice, announcedEndpoints, githubEndpoints } from "./oauth-device.ts";
import { OauthPkce } from "./oauth-pkce.ts";
import { Prompt } from "./prompt.ts";
import { SshKey, type SshOptions } from "./ssh-key.ts";

/** The public client and the redirect port of the vendor's own command line, which every workspace knows. */
const DATABRICKS = {
  clientId: "databricks-cli",
  port: 8020,
  scopes: ["all-apis", "offline_access"],
} as const;

export interface EngineParts {
  readonly store: SecretStore;
  readonly username: string;
  readonly clock: Clock;
  /** Takes each new SSH key with a passphrase. */
  readonly onSshKey?: SshOptions["onKey"];
}

/** The engine of an enrolment as configured. */
export function engineFor(
  config: EnrolmentConfig,
  { store, username, clock, onSshKey }: EngineParts,
): EnrolmentEngine {
  switch (config.engine) {
    case "copy":
      return new Copy(store, { from: config.from, fields: config.fields, username });
    case "ssh":
      return new SshKey({
        passphrase: config.passphrase,
        comment: config.comment ?? `${username}@${hostname()}`,
        ...(onSshKey !== undefined && { onKey: onSshKey }),
      });
    case "prompt":
      return new Prompt(config);
    case "github":
      return new OauthDevice({ ...device(config), endpoints: githubEndpoints(config.host) }, clock);
    case "svc":
      return new OauthDevice({ ...device(config), endpoints: announcedEndpoints(config.url) }, clock);
    case "oauth-device": {
      const endpoints = { deviceUrl: config.device_url, tokenUrl: config.token_url };
      const flow = {
        ...device(config),
        audience: config.audience,
        endpoints: () => Promise.resolve(endpoints),
      };
      return new OauthDevice(flow, clock);
    }
    case "oauth-pkce":
      return new OauthPkce(
        {
          authorizeUrl: config.authorize_url,
          tokenUrl: config.token_url,
          ...device(config),
          audience: config.audience,
          callbackPort: config.callback_port,
        },
        clock,
      );
    case "databricks": {
      const base = `${config.host.replace(/\/$/, "")}/oidc/v1`;
      return new OauthPkce(
        {
          authorizeUrl: `${base}/authorize`,
          tokenUrl: `${base}/token`,
          clientId: DATABRICKS.clientId,
          scopes: config.scopes.length > 0 ? config.scopes : DATABRICKS.scopes,
          callbackPort: DATABRICKS.port,
        },
        clock,
      );
    }
    case "jfrog":
      return new Jfrog(config.url, clock);
    default:
      return config satisfies never;
  }
}

function device({ client_id: clientId, scopes }: { client_id: string; scopes: readonly string[] }) {
  return { clientId, scopes };
}
