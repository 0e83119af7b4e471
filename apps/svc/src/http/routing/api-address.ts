import type { CodeHost } from "../../code-host/code-host.ts";
import type { VirtualHost } from "./virtual-host.ts";
import { splitTarget } from "./target.ts";

/** Interface of the code host's API that a request is for, and its address. */
export interface ApiTarget {
  readonly kind: "rest" | "graphql" | "uploads";
  /** Below the interface's base, with its leading slash; encoded as it came. */
  readonly path: string;
  readonly query: string;
  /** The interface's base at the code host, without a final slash. */
  readonly base: string;
  /** Prefix of `path` on the surface that the client uses. */
  readonly prefix: string;
}

interface Mount {
  readonly kind: ApiTarget["kind"];
  readonly prefix: string;
  readonly base: string;
}

/** Recognises requests for the API by surface and path (spec/svc.md section 1). */
export class ApiAddresses {
  readonly #management: readonly Mount[];
  readonly #named: readonly Mount[];
  readonly #uploads: readonly Mount[];

  constructor(host: Pick<CodeHost, "kind" | "apiUrl" | "graphqlUrl" | "uploadsUrl">) {
    const { apiUrl, graphqlUrl, uploadsUrl } = host;
    const rest = host.kind === "gitea" ? "/api/v1" : "/api/v3";
    this.#management = mounts([
      ["graphql", "/api/graphql", graphqlUrl],
      ["uploads", "/api/uploads", uploadsUrl],
      ["rest", rest, apiUrl],
    ]);
    this.#named = mounts([
      ["graphql", graphqlUrl === undefined ? "" : pathOf(graphqlUrl), sameHost(graphqlUrl, apiUrl)],
      ["uploads", uploadsUrl === undefined ? "" : pathOf(uploadsUrl), sameHost(uploadsUrl, apiUrl)],
      ["rest", pathOf(apiUrl), apiUrl],
    ]);
    this.#uploads = mounts([["uploads", uploadsUrl === undefined ? "" : pathOf(uploadsUrl), uploadsUrl]]);
  }

  /** The paths of the code host's API name that are the API's, where that name has other things too. */
  get namedPrefixes(): readonly string[] {
    return this.#named.map(({ prefix }) => prefix);
  }

  /** Whether a request is the API's to answer, be it with a 404. */
  accepts(virtualHost: VirtualHost, requestTarget: string): boolean {
    return (
      virtualHost === "code_host_api" ||
      virtualHost === "code_host_uploads" ||
      this.find(virtualHost, requestTarget) !== undefined
    );
  }

  /** Undefined: not the API. */
  find(virtualHost: VirtualHost, requestTarget: string): ApiTarget | undefined {
    const { path, query } = splitTarget(requestTarget);
    const candidates =
      virtualHost === "management"
        ? this.#management
        : virtualHost === "code_host_api"
          ? this.#named
          : virtualHost === "code_host_uploads"
            ? this.#uploads
            : [];
    const mount = candidates.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`));
    return mount && { ...mount, path: path.slice(mount.prefix.length), query };
  }
}

function mounts(rows: readonly (readonly [Mount["kind"], string, string | undefined])[]): Mount[] {
  return rows.flatMap(([kind, prefix, base]) => (base === undefined ? [] : [{ kind, prefix, base }]));
}

function sameHost(url: string | undefined, other: string): string | undefined {
  return url !== undefined && new URL(url).host === new URL(other).host ? url : undefined;
}

function pathOf(url: string): string {
  return new URL(url).pathname.replace(/\/+$/, "");
}
