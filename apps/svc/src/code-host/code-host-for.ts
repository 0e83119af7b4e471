import type { CodeHost } from "./code-host.ts";
import { gitea } from "./gitea.ts";
import { github } from "./github.ts";

/** The adapter for the `host` section of the configuration. */
export function codeHostFor(host: {
  readonly kind: CodeHost["kind"];
  readonly url: string;
  readonly api_url?: string | undefined;
}): CodeHost {
  return host.kind === "gitea" ? gitea(host.url, host.api_url) : github(host.url, host.api_url);
}
