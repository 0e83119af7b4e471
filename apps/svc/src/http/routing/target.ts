import { BRAND } from "../../brand.ts";
import type { VirtualHost } from "./virtual-host.ts";

/** Files of a seed, and the bundle that is made of its pack. */
export type SeedExtension = "pack" | "idx" | "rev" | "graph" | "bundle";

/** Resource of a repository that a request is for. */
export type RepositoryTail =
  /** `info/refs?service=…` */
  | { readonly kind: "info_refs"; readonly service: "git-upload-pack" | "git-receive-pack" }
  /** `info/refs` without service: the dumb protocol. */
  | { readonly kind: "dumb_info_refs" }
  /** `HEAD`, `objects/…` of the dumb protocol. */
  | { readonly kind: "dumb_object" }
  | { readonly kind: "upload_pack" }
  | { readonly kind: "receive_pack" }
  /** `svc/ensure`: brings objects here before they are fetched. The code host is asked at `git-upload-pack`. */
  | { readonly kind: "ensure" }
  /** `svc/seed`: names the files of a seed. The code host is asked at `git-upload-pack`. */
  | { readonly kind: "seed" }
  /** `svc/seed/<pack>.<extension>`: a file of a seed. */
  | {
      readonly kind: "seed_file";
      /** `pack-<checksum>` */
      readonly pack: string;
      readonly extension: SeedExtension;
    }
  /** `info/lfs/…` */
  | { readonly kind: "lfs" }
  /** Archives of a tree; of the path what names it, and perhaps a file's ending. */
  | { readonly kind: "archive"; readonly revision: string }
  /** Single files, only on the code host's name; of the path what names the tree begins with this. */
  | { readonly kind: "raw"; readonly revision: string };

/**
 * Meaning of a request's path and query, decided once.
 * - `repository`: something of a repository. `owner` and `name` as the client wrote them, `name` without `.git`;
 *   `upstreamPath` is path and query to ask the code host for, rebuilt from what was understood.
 * - `other`: anything else; `upstreamPath` is the target as it came.
 * - `malformed`: to be refused with 400 and this reason.
 */
export type Target =
  | {
      readonly kind: "repository";
      readonly owner: string;
      readonly name: string;
      readonly tail: RepositoryTail;
      readonly upstreamPath: string;
    }
  | { readonly kind: "other"; readonly upstreamPath: string }
  | { readonly kind: "malformed"; readonly reason: string };

/** First words of management paths: a repository's archive is not looked for under them. */
const MANAGEMENT_WORDS = new Set(
  ["admin", "ui", "api", "auth", "cli", "hooks", "metrics", "healthz", "readyz", "docs", "static"].values(),
);

/** Files of the dumb protocol (gitprotocol-http, "Dumb Server"; git's http-backend.c, services[]). */
const DUMB_OBJECT =
  /^(?:HEAD|objects\/info\/[a-z-]+|objects\/[0-9a-f]{2}\/(?:[0-9a-f]{38}|[0-9a-f]{62})|objects\/pack\/pack-(?:[0-9a-f]{40}|[0-9a-f]{64})\.(?:pack|idx))$/;

const SEED_FILE = /^(pack-(?:[0-9a-f]{40}|[0-9a-f]{64}))\.(pack|idx|rev|graph|bundle)$/;

/** Whether a request target begins as those of pages and API do: a program or a browser asks, not git. */
export function isManagementPath(requestTarget: string): boolean {
  return MANAGEMENT_WORDS.has(splitTarget(requestTarget).path.split("/", 2)[1]?.toLowerCase() ?? "");
}

/** Path and query of a request target in origin form, or the part of an absolute form that is meant. */
export function splitTarget(requestTarget: string): { readonly path: string; readonly query: string } {
  const origin = requestTarget.replace(/^https?:\/\/[^/?#]*/i, "");
  const mark = origin.indexOf("?");
  return mark < 0
    ? { path: origin, query: "" }
    : { path: origin.slice(0, mark), query: origin.slice(mark + 1) };
}

/** The values in a query, decoded, as any server might split it: also at semicolons, and with `+` for a blank. */
export function queryValues(query: string): string[] {
  return query.split(/[&;]/).flatMap((part) => {
    const value = part.slice(part.indexOf("=") + 1);
    return [...new URLSearchParams({ value }).values(), ...new URLSearchParams(`value=${value}`).values()];
  });
}

/**
 * Classifies a request target. Percent-encoding is undone once; dot segments, doubled slashes, encoded slashes in
 * anything that concerns a repository, and control characters are refused, so that what is judged here is what the
 * code host is asked for.
 *
 * @param hostBasePath the path of `host.url`, without a final slash; on the code host's name paths begin with it
 */
export function classifyTarget(requestTarget: string, virtualHost: VirtualHost, hostBasePath = ""): Target {
  const { path, query } = splitTarget(requestTarget);
  if (!path.startsWith("/")) return malformed("the request target is not a path");
  const decoded = decodePath(path);
  if (decoded === undefined) return malformed("the path has a malformed percent-encoding");
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f\\]/.test(decoded))
    return malformed("the path has a character that is not allowed");
  const segments = decoded.split("/").slice(1);
  const last = segments.length - 1;
  for (const [index, segment] of segments.entries()) {
    if (segment === "." || segment === "..") return malformed("the path has a dot segment");
    if (segment === "" && index !== last) return malformed("the path has a doubled slash");
  }
  const prefix = virtualHost === "code_host" ? hostBasePath.split("/").slice(1) : [];
  const inside = prefix.every((segment, index) => segments[index] === segment)
    ? segments.slice(prefix.length)
    : [];
  // Servers disagree on whether an encoded slash separates: a path that is a repository's in either reading is refused.
  if (/%2f/i.test(path)) {
    const unsplit = path
      .replaceAll(/%2f/gi, "_")
      .split("/")
      .slice(1 + prefix.length);
    if (
      repositoryTail(unsplit, query, virtualHost) !== undefined ||
      repositoryTail(inside, query, virtualHost) !== undefined
    ) {
      return malformed("the path has an encoded slash");
    }
  }
  const found = repositoryTail(inside, query, virtualHost);
  if (found === undefined) return { kind: "other", upstreamPath: query === "" ? path : `${path}?${query}` };
  if ("reason" in found) return malformed(found.reason);
  const [owner = "", written = ""] = inside;
  const name = written.endsWith(".git") ? written.slice(0, -".git".length) : written;
  if (owner === "" || name === "") return malformed("the path names no repository");
  if (name === "." || name === "..") return malformed("the path has a dot segment");
  const upstream = found.upstream === undefined ? inside : [owner, written, found.upstream];
  const rebuilt = upstream.map((segment) => encodeURIComponent(segment)).join("/");
  const parameters = found.query === "" ? "" : `?${found.query}`;
  return {
    kind: "repository",
    owner,
    name,
    tail: found.tail,
    upstreamPath: `${hostBasePath}/${rebuilt}${parameters}`,
  };
}

interface FoundTail {
  readonly tail: RepositoryTail;
  readonly query: string;
  /** Tail of the request to the code host; undefined: the same. */
  readonly upstream?: string;
}

/** The tail after owner and name, with the query to ask the code host with; undefined: no path of a repository. */
function repositoryTail(
  segments: readonly string[],
  query: string,
  virtualHost: VirtualHost,
): FoundTail | { readonly reason: string } | undefined {
  const [owner = "", , third = ""] = segments;
  const tail = segments.slice(2).join("/");
  if (tail === "info/refs") return infoRefs(query);
  if (tail === "git-upload-pack") return { tail: { kind: "upload_pack" }, query: "" };
  if (tail === "git-receive-pack") return { tail: { kind: "receive_pack" }, query: "" };
  if (tail === `${BRAND.command}/ensure`) {
    return { tail: { kind: "ensure" }, query: "", upstream: "git-upload-pack" };
  }
  if (tail === `${BRAND.command}/seed`) {
    return { tail: { kind: "seed" }, query: "", upstream: "git-upload-pack" };
  }
  if (tail.startsWith(`${BRAND.command}/seed/`)) {
    const [, pack, extension] = SEED_FILE.exec(segments.slice(4).join("/")) ?? [];
    if (pack === undefined || !isSeedExtension(extension)) return undefined;
    return { tail: { kind: "seed_file", pack, extension }, query: "", upstream: "git-upload-pack" };
  }
  if (tail.startsWith("info/lfs/")) return { tail: { kind: "lfs" }, query: rebuildQuery(query) };
  if (DUMB_OBJECT.test(tail)) return { tail: { kind: "dumb_object" }, query: "" };
  if (segments.length < 4) return undefined;
  if (["archive", "zipball", "tarball"].includes(third)) {
    if (virtualHost !== "code_host" && MANAGEMENT_WORDS.has(owner.toLowerCase())) return undefined;
    return { tail: { kind: "archive", revision: segments.slice(3).join("/") }, query: rebuildQuery(query) };
  }
  if (third === "raw" && virtualHost === "code_host")
    return { tail: { kind: "raw", revision: segments[3] ?? "" }, query: rebuildQuery(query) };
  return undefined;
}

function isSeedExtension(text: string | undefined): text is SeedExtension {
  return text === "pack" || text === "idx" || text === "rev" || text === "graph" || text === "bundle";
}

function infoRefs(query: string): FoundTail | { readonly reason: string } {
  const services = new URLSearchParams(query).getAll("service");
  const [service] = services;
  if (services.length > 1) return { reason: "the query names more than one service" };
  if (service === undefined) return { tail: { kind: "dumb_info_refs" }, query: "" };
  if (service !== "git-upload-pack" && service !== "git-receive-pack") {
    return { reason: "the query names an unknown service" };
  }
  return { tail: { kind: "info_refs", service }, query: `service=${service}` };
}

function rebuildQuery(query: string): string {
  return new URLSearchParams(query).toString();
}

function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function malformed(reason: string): Target {
  return { kind: "malformed", reason };
}

/** The path of `host.url`, without a final slash; usually empty. */
export function basePathOf(hostUrl: string): string {
  return new URL(hostUrl).pathname.replace(/\/+$/, "");
}
