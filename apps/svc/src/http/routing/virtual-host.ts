import { isIP } from "node:net";

/**
 * Which face of the service a request is for (spec/svc.md section 1).
 * - `management`: our own pages and API, and git under the plain path.
 * - `code_host`: the code host's name: everything that the code host has there.
 * - `code_host_api`: the code host's API name.
 * - `code_host_uploads`: the code host's name for uploads.
 * - `unknown`: a name that is not ours, where `server.management_host` says which one is.
 */
export type VirtualHost = "management" | "code_host" | "code_host_api" | "code_host_uploads" | "unknown";

export interface VirtualHostOptions {
  readonly baseUrl: string;
  /** Unset: every name that is not the code host's is the management surface. */
  readonly managementHost?: string | undefined;
  readonly hostUrl: string;
  readonly apiUrl: string;
  /** Undefined: the code host has no name of its own for uploads. */
  readonly uploadsUrl?: string | undefined;
  /** Paths of the API where it shares the web side's name; default: that of `apiUrl`. */
  readonly apiPrefixes?: readonly string[];
}

/** Tells the surface from a `Host` header. Management comes first. */
export class VirtualHosts {
  readonly #baseAuthority: string;
  readonly #managementHost: string | undefined;
  readonly #host: string;
  readonly #api: string;
  readonly #uploads: string | undefined;
  readonly #apiPrefixes: readonly string[];

  constructor(options: VirtualHostOptions) {
    this.#baseAuthority = new URL(options.baseUrl).host;
    this.#managementHost = options.managementHost?.toLowerCase();
    this.#host = new URL(options.hostUrl).hostname;
    const api = new URL(options.apiUrl);
    this.#api = api.hostname;
    this.#uploads = options.uploadsUrl === undefined ? undefined : new URL(options.uploadsUrl).hostname;
    this.#apiPrefixes = options.apiPrefixes ?? [api.pathname.replace(/\/+$/, "")];
  }

  /** @param host the `Host` header; undefined: none was sent. @param path the request's path, from its first slash */
  of(host: string | undefined, path: string): VirtualHost {
    const authority = (host ?? "").toLowerCase();
    const name = authority.replace(/:\d*$/, "");
    if (authority === this.#baseAuthority || isLiteralOrLoopback(name)) return "management";
    if (this.#managementHost !== undefined && [authority, name].includes(this.#managementHost)) {
      return "management";
    }
    if (name === this.#api && (name !== this.#host || this.#underApi(path))) return "code_host_api";
    if (name === this.#host) return "code_host";
    if (name === this.#uploads) return "code_host_uploads";
    return this.#managementHost === undefined ? "management" : "unknown";
  }

  #underApi(path: string): boolean {
    return this.#apiPrefixes.some((prefix) => path === prefix || path.startsWith(`${prefix}/`));
  }
}

function isLiteralOrLoopback(name: string): boolean {
  return name === "" || name === "localhost" || name.startsWith("[") || isIP(name) !== 0;
}
