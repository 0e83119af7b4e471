/** Tests of a script that cannot pass with `svc` between client and server. */
interface CannotPass {
  /** Beginnings of their titles. */
  readonly tests: readonly string[];
  readonly reason: string;
}

/** A script of git's own tests. */
export interface Script {
  readonly name: string;
  /** Tests that pass with git {@link RECORDED_GIT}. */
  readonly passes: number;
  readonly cannot: readonly CannotPass[];
}

/** The version of git whose tests are in these tables. */
export const RECORDED_GIT = "2.55.0";

const CHANGED_ONCE =
  "a script changes one response of the code host, which svc does not ask for, or which its background fetch gets";

/** Scripts of the ordinary run: protocol v2, clones, credentials and bundles over HTTP. */
export const SCRIPTS: readonly Script[] = [
  { name: "t5702-protocol-v2.sh", passes: 85, cannot: [] },
  {
    name: "t5551-http-fetch-smart.sh",
    passes: 51,
    cannot: [
      { tests: ["clone http repository"], reason: "it compares all headers, and svc adds its own ones" },
      { tests: ["cookies stored in http.cookiefile"], reason: "svc does not pass on cookies" },
      {
        tests: ["custom http headers"],
        reason: "svc passes on the headers that git itself sends, and no others",
      },
      {
        tests: ["passing hostname resolution information works"],
        reason: "svc in development mode does not answer for unknown host names",
      },
    ],
  },
  { name: "t5558-clone-bundle-uri.sh", passes: 37, cannot: [] },
  { name: "t5620-backfill.sh", passes: 26, cannot: [] },
  { name: "t5732-protocol-v2-bundle-uri-http.sh", passes: 9, cannot: [] },
  {
    name: "t5563-simple-http-auth.sh",
    passes: 16,
    cannot: [
      {
        tests: [
          "access using basic auth with wwwauth header continuations",
          "access using basic auth with wwwauth header empty continuations",
          "access using basic auth with wwwauth header mixed continuations",
        ],
        reason:
          "a gateway may refuse a header that goes on in a second line (RFC 9112, section 5.2): svc answers 502",
      },
    ],
  },
];

/** Scripts of the long run. */
export const LONG_SCRIPTS: readonly Script[] = [
  { name: "t0410-partial-clone.sh", passes: 36, cannot: [] },
  { name: "t0611-reftable-httpd.sh", passes: 1, cannot: [] },
  { name: "t5411-proc-receive-hook.sh", passes: 354, cannot: [] },
  { name: "t5500-fetch-pack.sh", passes: 367, cannot: [] },
  { name: "t5510-fetch.sh", passes: 227, cannot: [] },
  {
    name: "t5537-fetch-shallow.sh",
    passes: 16,
    cannot: [{ tests: ["shallow fetches check connectivity before writing"], reason: CHANGED_ONCE }],
  },
  { name: "t5539-fetch-http-shallow.sh", passes: 8, cannot: [] },
  { name: "t5541-http-push-smart.sh", passes: 39, cannot: [] },
  { name: "t5542-push-http-shallow.sh", passes: 3, cannot: [] },
  { name: "t5545-push-options.sh", passes: 13, cannot: [] },
  { name: "t5548-push-porcelain.sh", passes: 25, cannot: [] },
  { name: "t5549-fetch-push-http.sh", passes: 3, cannot: [] },
  { name: "t5550-http-fetch-dumb.sh", passes: 59, cannot: [] },
  { name: "t5561-http-backend.sh", passes: 14, cannot: [] },
  { name: "t5564-http-proxy.sh", passes: 8, cannot: [] },
  {
    name: "t5581-http-curl-verbose.sh",
    passes: 1,
    cannot: [
      {
        tests: ["failure in git-upload-pack is shown"],
        reason: "svc passes on the number of a status, not the words after it",
      },
    ],
  },
  { name: "t5584-http-429-retry.sh", passes: 17, cannot: [] },
  {
    name: "t5601-clone.sh",
    passes: 111,
    cannot: [
      {
        tests: ["reject cloning shallow repository using HTTP"],
        reason: "the repository was not shallow before, and svc has its whole history from then",
      },
    ],
  },
  {
    name: "t5616-partial-clone.sh",
    passes: 44,
    cannot: [
      {
        tests: [
          "upon cloning, check that all refs point to objects",
          "when partial cloning, tolerate server not sending target of tag",
          "tolerate server sending REF_DELTA against missing promisor objects",
        ],
        reason: CHANGED_ONCE,
      },
    ],
  },
  { name: "t5700-protocol-v1.sh", passes: 24, cannot: [] },
  {
    name: "t5703-upload-pack-ref-in-want.sh",
    passes: 21,
    cannot: [{ tests: ["server is initially ", "server loses a ref"], reason: CHANGED_ONCE }],
  },
  {
    name: "t5812-proto-disable-http.sh",
    passes: 28,
    cannot: [
      {
        tests: ["http(s) transport respects GIT_ALLOW_PROTOCOL"],
        reason: "svc does not pass on a redirect to FTP",
      },
    ],
  },
];

/** Scripts that start a web server, and are in neither table. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  "t5003-archive-zip.sh": "archives over HTTP are files here; no request is one of a repository",
  "t5540-http-push-webdav.sh": "pushes over WebDAV are not part of this git, and svc does not pass on WebDAV",
  "t5557-http-get.sh": "git downloads files of other addresses; no request is one of a repository",
  "t5559-http-fetch-smart-http2.sh":
    "it is t5551 over HTTP/2 without TLS, which neither svc nor the router speaks",
  "t5619-clone-local-ambiguous-transport.sh": "it tests that git does not use HTTP",
};
