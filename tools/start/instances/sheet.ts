import { join } from "node:path";
import { shellQuote } from "../shell-quote.ts";
import type { Instance } from "./instance.ts";

export interface SheetParts {
  readonly root: string;
  /** Folder of the files to paste from. */
  readonly data: string;
  /** The same, as the lines name it. */
  readonly shown: string;
  /** Address of the balancer. */
  readonly baseUrl: string;
  readonly instances: readonly Instance[];
  readonly codeHost: string;
  readonly hostToken: string;
}

/** Variables and a function for a POSIX shell. Holds tokens of the development mode: 0600. */
export function environment(parts: SheetParts, token: string): string {
  const { root, baseUrl, instances, codeHost, hostToken } = parts;
  const hostAddress = new URL(codeHost);
  hostAddress.username = "dev";
  hostAddress.password = hostToken;
  return [
    `export SVC_URL=${shellQuote(baseUrl)}`,
    `export SVC_TOKEN=${shellQuote(token)}`,
    `export BALANCER=${shellQuote(baseUrl)}`,
    `export CODE_HOST=${shellQuote(hostAddress.href.replace(/\/$/, ""))}`,
    ...instances.flatMap((each) => [
      `export ${each.name.toUpperCase()}=http://127.0.0.1:${each.port}`,
      `export METRICS_${each.name.toUpperCase()}=http://127.0.0.1:${each.metricsPort}/metrics`,
    ]),
    `svc() ( exec ${shellQuote(join(root, "node_modules/.bin/svc"))} "$@" )`,
    "",
  ].join("\n");
}

export function sheet(
  { shown, baseUrl, instances }: SheetParts,
  { owner, name }: { readonly owner: string; readonly name: string },
): string {
  const addresses = instances.map((each) => `  ${each.name.toUpperCase()} http://127.0.0.1:${each.port}`);
  return `
All are up: nginx at ${baseUrl}, and behind it
${addresses.join("\n")}

The code host has the repository ${owner}/${name}. In another terminal, in this folder:

  . ${shown}/env

Then follow "Try it" in docs/svc/several-instances.md. Pages: ${baseUrl}/admin (any user name).
An instance that ends is started again after 5 s. Ctrl-C stops everything.
`;
}
