import { LOG_FORMATS, LOG_LEVELS, Secret } from "@devplat/base";
import { duration } from "@devplat/config";
import { z } from "zod";
import { BOUNDS, DEFAULTS } from "./defaults.ts";
import { addressFault } from "@devplat/config/address-list";
import { formatListen, parseListen, type ListenAddress } from "./listen.ts";

const text = z.string().min(1);
/** Masked when it is printed. */
const secretOf = (fault: (value: string) => string | undefined, read: (value: string) => string) =>
  z.codec(text, z.custom<Secret>(), {
    decode: (value, context) => {
      const message = fault(value);
      if (message === undefined) return new Secret(read(value));
      context.issues.push({ code: "custom", message, input: value });
      return z.NEVER;
    },
    encode: String,
  });
const secret = secretOf(
  () => undefined,
  (value) => value,
);
const bounded = (bounds: { min: number; max: number }): z.ZodInt => z.int().min(bounds.min).max(bounds.max);
const httpUrl = text
  .refine((value) => {
    const url = URL.parse(value);
    if (url === null || !["http:", "https:"].includes(url.protocol)) return false;
    return url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  }, "expected an http:// or https:// address without user name, query and fragment")
  .overwrite((value) => value.replace(/\/+$/, ""));
const originUrl = httpUrl.refine(
  (value) => URL.parse(value)?.pathname === "/",
  "expected an address without a path: the bucket is named by cache.object_bucket",
);
const listen = z.codec(text, z.custom<ListenAddress>(), {
  decode: (value, context) => {
    const address = parseListen(value);
    if (address !== undefined) return address;
    const message = "expected :PORT, ADDRESS:PORT, [IPV6]:PORT or unix:PATH";
    context.issues.push({ code: "custom", message, input: value });
    return z.NEVER;
  },
  encode: formatListen,
});
const hexKey = secretOf(
  (value) =>
    /^[0-9a-fA-F]{64}$/.test(value)
      ? undefined
      : "expected 32 bytes as 64 hexadecimal digits (openssl rand -hex 32)",
  (value) => value.toLowerCase(),
);
const accelSecret = secretOf(
  (value) =>
    /^[\x21-\x7e]{32,256}$/.test(value)
      ? undefined
      : "expected 32 to 256 visible ASCII characters (openssl rand -hex 32)",
  (value) => value,
);
/** Name or number of a group. YAML reads a number without quotes as such. */
const group = z.codec(
  z.custom<string | number>(
    (value) => (typeof value === "string" ? value !== "" : Number.isSafeInteger(value) && Number(value) >= 0),
    "expected the name or the number of a group",
  ),
  text,
  { decode: String, encode: (value) => value },
);
const network = text.refine(
  (value) => addressFault(value) === undefined,
  "expected an address or a network such as 10.0.0.0/8",
);
const bucketName = text.regex(
  /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  "expected the name of a bucket: 3 to 63 of a-z, 0-9, . and -",
);
const pathText = text.regex(
  /^[\w.-]+(?:\/[\w.-]+)*$/,
  "expected names of letters, digits, . _ - joined by /",
);

/** A section that may be missing. Each of its keys may be missing too. */
const section = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  z.strictObject(shape).prefault({} as z.input<z.ZodObject<Shape, z.core.$strict>>);

/** Every key of the configuration. `a.b_c` is set in YAML, or by the environment variable `SVC_A_B_C`. */
export const configSchema = z.strictObject({
  /** Folder for the database, the cache and generated keys. */
  data_dir: text.default(DEFAULTS.dataDir),
  /** Logins that have the admin role. */
  admins: z.array(text).default([]),
  dev: section({
    /** Test login and a built-in login form. Never in production. */
    mode: z.boolean().default(false),
    /** Lets development mode listen on an address that others reach. */
    mode_unsafe: z.boolean().default(false),
    /** Code-host token of test sessions that bring none. */
    host_token: secret.optional(),
  }),
  server: section({
    listen: listen.prefault(DEFAULTS.serverListen),
    /** The address that users type; default that of `listen`, `http://localhost:<port>` where it names no host. */
    base_url: httpUrl.optional(),
    /** Host name of the management surface; unset: every name that is not the code host's. */
    management_host: text.optional(),
    drain_seconds: bounded(BOUNDS.drainSeconds).default(DEFAULTS.drainSeconds),
    /** Proxies in front whose `X-Forwarded-For`, `X-Forwarded-Host` and PROXY headers count. */
    trusted_proxies: z.array(network).default([]),
    /** Connections begin with a PROXY header (version 1 or 2); only those of trusted proxies are taken. */
    proxy_protocol: z.boolean().default(false),
    /** Offers HTTP/2 and HTTP/1.1, where `tls.certificates` are set. */
    http2: z.boolean().default(false),
    max_connections: bounded(BOUNDS.maxConnections).default(DEFAULTS.maxConnections),
    /** The reverse proxy in front, which sends stored responses itself; unset: this service sends them. */
    accel: z.enum(["nginx", "caddy"]).optional(),
    /** Value of the header `X-Svc-Accel`, by which requests of that proxy are known. */
    accel_secret: accelSecret.optional(),
  }),
  tls: section({
    /** Certificates of the main listener, by the names in them (SNI); the first for clients that ask for no name. */
    certificates: z.array(z.strictObject({ cert_file: text, key_file: text })).default([]),
  }),
  metrics: section({
    listen: listen.prefault(DEFAULTS.metricsListen),
    /** Whether /metrics on the main port needs no credential. */
    public: z.boolean().default(false),
  }),
  host: section({
    kind: z.enum(["github", "gitea"]).default("github"),
    url: httpUrl.default(DEFAULTS.hostUrl),
    /** Default: the one that belongs to `url`. */
    api_url: httpUrl.optional(),
    /** PEM file with certificates that are trusted for the code host, in addition to the system's. */
    ca_file: text.optional(),
    client_id: text.optional(),
    client_secret: secret.optional(),
    app_id: text.optional(),
    private_key: secret.optional(),
    /** Secret that signs push events, besides the secrets of registered apps. */
    webhook_secret: secret.optional(),
  }),
  login: section({
    /** Logins that may sign in, besides admins; with both lists empty everybody with an account of the code host. */
    allowed_users: z.array(text).default([]),
    /** Organizations of the code host whose members may sign in. */
    allowed_organizations: z.array(text).default([]),
    /** How often the code host is asked whether a user is still a member, as long as sessions and tokens are used. */
    recheck_minutes: bounded(BOUNDS.recheckMinutes).default(DEFAULTS.recheckMinutes),
  }),
  database: section({
    driver: z.enum(["sqlite", "postgres", "vault"]).default("sqlite"),
    /** For sqlite a path, with or without `file:`; default `<data_dir>/svc.db`. May hold a password with others. */
    dsn: secret.optional(),
    /** Maximum concurrent connections to a database server. */
    max_connections: bounded(BOUNDS.databaseConnections).default(DEFAULTS.databaseConnections),
  }),
  vault: section({
    namespace: text.optional(),
    /** A KV version 2 engine; best one of the service's own. */
    mount: pathText.default(DEFAULTS.vaultMount),
    /** Folder in it for everything that is kept. */
    prefix: pathText.default(DEFAULTS.vaultPrefix),
    auth_method: z.enum(["token", "approle", "kubernetes"]).default("token"),
    /** Where the method is mounted; default its name. */
    auth_mount: pathText.optional(),
    token: secret.optional(),
    role_id: text.optional(),
    secret_id: secret.optional(),
    /** The role at the kubernetes method. */
    role: text.optional(),
    /** The service account's token. */
    jwt_file: text.default(DEFAULTS.vaultJwtFile),
    /** PEM file of the authorities to trust, instead of the system's. */
    ca_file: text.optional(),
  }),
  encryption: section({
    key: hexKey.optional(),
    /** Still decrypts what an earlier key encrypted. */
    key_previous: hexKey.optional(),
  }),
  cache: section({
    enabled: z.boolean().default(false),
    /** Folder of cached data, default `<data_dir>/cache`. With a bucket it is the beginning of all names in the bucket. */
    storage_path: text.optional(),
    /** With a bucket: folder of cached data; default `<data_dir>/cache`. */
    local_path: text.optional(),
    /** With a bucket: limit for the folder; default 80 % of its disk. */
    local_max_size_mb: bounded(BOUNDS.localMaxSizeMb).optional(),
    /** Group of this machine that may read files that are handed to the proxy in front (`server.accel`). */
    accel_group: group.optional(),
    /** Bucket of an S3-compatible store behind the local cache. */
    object_bucket: bucketName.optional(),
    object_region: text.default(DEFAULTS.objectRegion),
    /** Address of another store than AWS. */
    object_endpoint: originUrl.optional(),
    /** Whether the bucket is in the path and not in the host name; default: whether there is an endpoint. */
    object_path_style: z.boolean().optional(),
    /** Credentials for the store; unset: the standard chain of AWS. */
    object_access_key_id: text.optional(),
    object_secret_access_key: secret.optional(),
    /** Authenticates manifests in the bucket; default: derived from `encryption.key`. */
    object_key: hexKey.optional(),
    /** Still verifies manifests. */
    object_key_previous: hexKey.optional(),
    /** Encryption at rest that the store is asked for; `none`: as the bucket is set. */
    object_encryption: z.enum(["none", "sse-s3", "sse-kms"]).default("none"),
    /** For `sse-kms`; unset: the default key of the account. */
    object_encryption_key_id: text.optional(),
    /** PEM file with certificates that are trusted for the store, in addition to the system's. */
    object_ca_file: text.optional(),
    /** Time to the first byte of a read. */
    object_timeout_seconds: z
      .number()
      .min(BOUNDS.objectTimeoutSeconds.min)
      .max(BOUNDS.objectTimeoutSeconds.max)
      .default(DEFAULTS.objectTimeoutSeconds),
    object_upload_parallel: bounded(BOUNDS.objectUploadParallel).default(DEFAULTS.objectUploadParallel),
    object_queue_mb: bounded(BOUNDS.objectQueueMb).default(DEFAULTS.objectQueueMb),
    /** Whether owners and names of repositories are replaced by a keyed hash in names of objects. */
    object_hide_names: z.boolean().default(false),
    /** Whether one instance fetches from the code host for all; default: whether `database.driver` is `postgres`. */
    share_fetches: z.boolean().optional(),
    /** How long a request waits for the fetch of another instance. */
    share_wait_seconds: bounded(BOUNDS.shareWaitSeconds).default(DEFAULTS.shareWaitSeconds),
    grant_seconds: bounded(BOUNDS.grantSeconds).default(DEFAULTS.grantSeconds),
    tips_seconds: bounded(BOUNDS.tipsSeconds).default(DEFAULTS.tipsSeconds),
    /** A fetch needs an ls-refs in the same request, to the letter; stock git's clones then end in an error. */
    strict_lsrefs: z.boolean().default(false),
    max_upstream_fetches: bounded(BOUNDS.maxUpstreamFetches).default(DEFAULTS.maxUpstreamFetches),
    /** Objects that fill an empty store after a shallow or filtered request. */
    fill: z.enum(["full", "wants"]).default("full"),
    fill_max_mb: bounded(BOUNDS.fillMaxMb).default(DEFAULTS.fillMaxMb),
    /** How long a request may wait for its place, at the present speed. */
    queue_seconds: bounded(BOUNDS.queueSeconds).default(DEFAULTS.queueSeconds),
    /** How long a request waits before it is refused, or told that it waits. */
    queue_silent_seconds: bounded(BOUNDS.queueSilentSeconds).default(DEFAULTS.queueSilentSeconds),
    /** Size of a response that is made here from which it waits for a place. */
    heavy_mb: bounded(BOUNDS.heavyMb).default(DEFAULTS.heavyMb),
    /** Code-host token with which changes are fetched ahead; unset: they are not. */
    service_token: secret.optional(),
    /** Cap on all response files and packs together; unset: none. */
    max_total_size_mb: bounded(BOUNDS.maxTotalSizeMb).optional(),
    /** How long a response file that nobody asks for is kept; 0s: for ever. */
    drop_unused_after: duration().prefault(DEFAULTS.dropUnusedAfter),
    /** Whether seeds are made and sent for repositories whose records do not say so. */
    seeds: z.boolean().default(DEFAULTS.seeds),
    /** Minimum time between two seeds of a repository. */
    seed_interval: duration().prefault(DEFAULTS.seedInterval),
    /** How long a repository must be without requests before its packs are merged. */
    repack_idle_seconds: bounded(BOUNDS.repackIdleSeconds).default(DEFAULTS.repackIdleSeconds),
    /** Looks for collision attacks on SHA-1 in all that is taken in, as git does. */
    detect_sha1_collisions: z.boolean().default(true),
    /** How long objects stay that upstream dropped; 0s: for ever. */
    prune_unreachable_after: duration().prefault(DEFAULTS.pruneUnreachableAfter),
  }),
  /** Limits for foreign credentials. */
  border: section({
    /** Credentials that begin so are refused, such as `ghp_` or `github_pat_`. */
    block_token_prefixes: z.array(text).default([]),
    /** Whether git without a credential is refused. */
    block_anonymous_git: z.boolean().default(false),
    /** Owners whose repositories such credentials, and requests without one, reach; empty: all. */
    allowed_owners: z.array(text).default([]),
  }),
  tokens: section({
    max_duration: duration().prefault(DEFAULTS.tokenMaxDuration),
    /** Whether a proxy token may be for every repository or every scope (`*`). */
    allow_unrestricted: z.boolean().default(false),
    /** Whether a push needs `workflows:write` and `contents:write`, because its content is not examined. */
    push_needs_workflows: z.boolean().default(false),
    /** Whether a token may be without expiry (`never`). */
    allow_never: z.boolean().default(false),
    /** Longest life of an administration token. */
    admin_max_duration: duration().prefault(DEFAULTS.adminTokenMaxDuration),
    /** Requests of one token per minute, on git and API together; 0: no bound. */
    requests_per_minute: bounded(BOUNDS.requestsPerMinute).default(DEFAULTS.requestsPerMinute),
  }),
  audit: section({
    /** Days that audit records are kept; 0: for ever. */
    retention_days: bounded(BOUNDS.auditRetentionDays).default(DEFAULTS.auditRetentionDays),
  }),
  limits: section({
    git_command_bytes: bounded(BOUNDS.gitCommandBytes).default(DEFAULTS.gitCommandBytes),
    /** Concurrent requests of one client address; 0: no limit. */
    client_requests: bounded(BOUNDS.clientRequests).default(DEFAULTS.clientRequests),
  }),
  log: section({
    level: z.enum(LOG_LEVELS).default("info"),
    format: z.enum(LOG_FORMATS).default("auto"),
  }),
});

export type Config = z.output<typeof configSchema>;
