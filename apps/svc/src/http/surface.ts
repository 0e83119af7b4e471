import { isIP } from "node:net";

/**
 * Which face of the service a request is for (spec/svc.md section 1).
 * - `management`: our own pages and API, and git under the plain path.
 * - `code_host`: the code host's name: everything that the code host has there.
 * - `code_host_api`: the code host's API name.
 * - `unknown`: a name that is none of ours, where `server.management_host` says which one is.
 */
export type Surface = "management" | "code_host" | "code_host_api" | "unknown";

export interface SurfaceOptions {
  readonly baseUrl: string;
  /** Unset: every name that is not the code host's is the management surface. */
  readonly managementHost?: string | undefined;
  readonly hostUrl: string;
  readonly apiUrl: string;
}

/** Tells the surface from a `Host` header. Management comes first. */
export class Surfaces {
  readonly #baseAuthority: string;
  readonly #managementHost: string | undefined;
  readonly #host: string;
  readonly #api: string;
  readonly #apiPrefix: string;

  constructor(options: SurfaceOptions) {
    this.#baseAuthority = new URL(options.baseUrl).host;
    this.#managementHost = options.managementHost?.toLowerCase();
    this.#host = new URL(options.hostUrl).hostname;
    const api = new URL(options.apiUrl);
    this.#api = api.hostname;
    this.#apiPrefix = api.pathname.replace(/\/+$/, "");
  }

  /** @param host the `Host` header; undefined: none was sent. @param path the request's path, from its first slash */
  of(host: string | undefined, path: string): Surface {
    const authority = (host ?? "").toLowerCase();
    const name = authority.replace(/:\d*$/, "");
    if (authority === this.#baseAuthority || isLiteralOrLoopback(name)) return "management";
    if (this.#managementHost !== undefined && [authority, name].includes(this.#managementHost)) {
      return "management";
    }
    if (name === this.#api && (name !== this.#host || this.#underApi(path))) return "code_host_api";
    if (name === this.#host) return "code_host";
    return this.#managementHost === undefined ? "management" : "unknown";
  }

  #underApi(path: string): boolean {
    return path === this.#apiPrefix || path.startsWith(`${this.#apiPrefix}/`);
  }
}

function isLiteralOrLoopback(name: string): boolean {
  return name === "" || name === "localhost" || name.startsWith("[") || isIP(name) !== 0;
}
