import type { Target } from "../http/routing/target.ts";
import type { GitAction } from "../scopes/required-permissions.ts";
import { lfsOperation } from "./lfs.ts";

/** The way in which the client learns of a failure after a part of the response was sent. */
type LateFailure =
  /** There is none: the response is one short write. */
  | "none"
  /** The connection is closed before the end of the body. */
  | "cut"
  /** As `cut`, after a last packet with the error, which git prints: on side-band 3 within a pack, `ERR` before it. */
  | "packet";

/** One kind of git request. */
export interface GitRoute {
  /** Below `/<owner>/<repository>`. */
  readonly path: string;
  readonly methods: readonly string[];
  /** The permission on the repository's contents that a token needs. `operation`: it depends on the LFS operation. */
  readonly permission: "read" | "write" | "operation" | "never";
  /** `cache`: for a cached repository and protocol v2; everything else goes to the code host. */
  readonly service: "cache" | "code host";
  /** Whether the code host may redirect the client to another server, as it does for downloads. */
  readonly redirects: "never" | "elsewhere";
  /**
   * The response to a failure. Before the first byte it is always a status of its own with a line of text:
   * 400 malformed, 401 and 403 refused, 405 method, 408 slow body, 413 large body, 415 type or encoding of the body,
   * 429 too many requests of the address, 502 unreachable code host, 503 no place in time (200 with `ERR` for a fetch of git), 504 silent code host.
   */
  readonly failure: { readonly before: "status"; readonly after: LateFailure };
}

const READ = ["GET", "HEAD"];
const CUT = { before: "status", after: "cut" } as const;
const PACKET = { before: "status", after: "packet" } as const;

/** All kinds of requests to the git side of the code host. */
export const GIT_ROUTES = {
  advertise_fetch: {
    path: "info/refs?service=git-upload-pack",
    methods: READ,
    permission: "read",
    service: "code host",
    redirects: "never",
    failure: CUT,
  },
  advertise_push: {
    path: "info/refs?service=git-receive-pack",
    methods: READ,
    permission: "write",
    service: "code host",
    redirects: "never",
    failure: CUT,
  },
  fetch: {
    path: "git-upload-pack",
    methods: ["POST"],
    permission: "read",
    service: "cache",
    redirects: "never",
    failure: PACKET,
  },
  push: {
    path: "git-receive-pack",
    methods: ["POST"],
    permission: "write",
    service: "code host",
    redirects: "never",
    failure: CUT,
  },
  ensure: {
    path: "svc/ensure",
    methods: ["POST"],
    permission: "read",
    service: "cache",
    redirects: "never",
    failure: { before: "status", after: "none" },
  },
  seed: {
    path: "svc/seed",
    methods: READ,
    permission: "read",
    service: "cache",
    redirects: "never",
    failure: { before: "status", after: "none" },
  },
  seed_file: {
    path: "svc/seed/…",
    methods: READ,
    permission: "read",
    service: "cache",
    redirects: "never",
    failure: CUT,
  },
  dumb_refs: {
    path: "info/refs",
    methods: READ,
    permission: "read",
    service: "code host",
    redirects: "never",
    failure: CUT,
  },
  dumb_object: {
    path: "HEAD and objects/…",
    methods: READ,
    permission: "read",
    service: "code host",
    redirects: "never",
    failure: CUT,
  },
  lfs: {
    path: "info/lfs/…",
    methods: [...READ, "POST", "PUT", "PATCH", "DELETE"],
    permission: "operation",
    service: "code host",
    redirects: "elsewhere",
    failure: CUT,
  },
  archive: {
    path: "archives of a tree",
    methods: READ,
    permission: "read",
    service: "code host",
    redirects: "elsewhere",
    failure: CUT,
  },
  raw: {
    path: "single files, on the code host's name",
    methods: READ,
    permission: "read",
    service: "code host",
    redirects: "elsewhere",
    failure: CUT,
  },
  /** Pages of the code host, on its own name. */
  other: {
    path: "anything else",
    methods: [],
    permission: "never",
    service: "code host",
    redirects: "elsewhere",
    failure: CUT,
  },
} as const satisfies Readonly<Record<string, GitRoute>>;

/** The row of a request. */
export function routeOf(target: Target): GitRoute {
  if (target.kind !== "repository") return GIT_ROUTES.other;
  const { tail } = target;
  switch (tail.kind) {
    case "info_refs":
      return tail.service === "git-upload-pack" ? GIT_ROUTES.advertise_fetch : GIT_ROUTES.advertise_push;
    case "dumb_info_refs":
      return GIT_ROUTES.dumb_refs;
    case "upload_pack":
      return GIT_ROUTES.fetch;
    case "receive_pack":
      return GIT_ROUTES.push;
    default:
      return GIT_ROUTES[tail.kind];
  }
}

/** The action of a request, in the terms of scopes; undefined: no token of this service allows it. */
export function actionOf(target: Target, method: string): GitAction | undefined {
  if (target.kind !== "repository") return undefined;
  const { owner, name, tail } = target;
  const { permission } = routeOf(target);
  if (permission === "never") return undefined;
  if (permission === "operation") {
    const operation = lfsOperation(method, target.upstreamPath);
    // The operation of a batch is in its body. Without it the larger permission is needed.
    return operation && { owner, name, resource: "contents", level: operation === "read" ? "read" : "write" };
  }
  // No ref's name has a colon (git-check-ref-format), but `owner:branch` of a fork does.
  if ((tail.kind === "archive" || tail.kind === "raw") && tail.revision.includes(":")) return undefined;
  return { owner, name, resource: "contents", level: permission };
}
