/** Every default and bound of the configuration, with its unit and where it comes from. */
export const DEFAULTS = {
  /** Folder for everything the service writes, relative to the working folder. */
  dataDir: "data",
  /** The mission's form `:<port>`. */
  serverListen: ":8080",
  /** The mission's example port; loopback, because metrics name repositories. */
  metricsListen: "127.0.0.1:9136",
  hostUrl: "https://github.com",
  vaultMount: "kv",
  vaultPrefix: "svc",
  /** Where Kubernetes puts it into a pod. */
  vaultJwtFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
  /** Connections to Postgres: queries take under a millisecond, so ten serve thousands of requests a second. */
  databaseConnections: 10,
  /** Seconds that running clones get to finish when the service stops: a 1 GB pack at 100 Mbit/s needs 80. */
  drainSeconds: 90,
  /** Seconds that an authorization is valid for the same credential and repository (spec/svc.md section 2.1). */
  grantSeconds: 5,
  /** Seconds that the refs of an authorization make their objects servable (section 2.1). */
  tipsSeconds: 600,
  /** Concurrent fetches from the code host, over all repositories (section 2.2). */
  maxUpstreamFetches: 32,
  /** Seconds in which a request that waits must get its place, at the present speed; otherwise it is refused. */
  queueSeconds: 60,
  /** Seconds that a request waits without a byte: stock git has no time limit, but many proxies end silence after 60. */
  queueSilentSeconds: 10,
  /** Megabytes of a response that waits for a place: smaller ones take less than 50 ms to make (spec/svc-scale.md section 5). */
  heavyMb: 16,
  /**
   * Time after which a response file that nobody asked for goes: what it answers is made from packs again. As long as
   * objects that upstream dropped are kept (section 2.4).
   */
  dropUnusedAfter: "30d",
  /** Whether seeds are made and sent: a clone by one costs the service less than a fetch. */
  seeds: true,
  seedInterval: "1h",
  /** Seconds: git's client unpacks 140 MB in about 10, often on the machine that the service runs on. */
  repackIdleSeconds: 10,
  /** Time that objects stay which upstream dropped (section 2.4). */
  pruneUnreachableAfter: "30d",
  /** Megabytes of a pack that fills an empty store behind a request: git's own sources take 400 (section 2.2). */
  fillMaxMb: 10_240,
  /** Region that requests are signed for: that of AWS itself, and other stores mostly take it. */
  objectRegion: "us-east-1",
  /** Seconds to the first byte of a read from the bucket: a store in the same region takes less than a tenth of one. */
  objectTimeoutSeconds: 2,
  /** Parts of one upload in transfer: four of 8 MiB use a gigabit connection. */
  objectUploadParallel: 4,
  /** Seconds that a request waits for the fetch of another instance: no client notices this next to a slow fetch. */
  shareWaitSeconds: 10,
  /** Megabytes of files that wait for their upload: an hour of a busy instance. */
  objectQueueMb: 4096,
  /** Concurrent connections; each idle one takes about 20 KB. */
  maxConnections: 10_000,
  /** Concurrent requests of one address: a CI fleet may share one, and 200 concurrent clones are ordinary. */
  clientRequests: 2000,
  /** Bytes that a v2 command body may inflate to: 64 MiB (section 1). */
  gitCommandBytes: 64 * 1024 * 1024,
  /** Longest life of a proxy token (section 4). */
  tokenMaxDuration: "168h",
  /** Longest life of an administration token: a year, so that a forgotten one is noticed. */
  adminTokenMaxDuration: "365d",
  /** Days that audit records are kept: what investigations commonly look back to; a row takes about 500 bytes. */
  auditRetentionDays: 90,
  /** Minutes between two questions about a user's memberships: one call of the user's 5000 an hour. */
  recheckMinutes: 60,
  /** Requests of one token per minute: 100 in a second, where the code host itself takes 5000 in an hour of its API. */
  requestsPerMinute: 6000,
} as const;

export const BOUNDS = {
  /** To a hundred years; 0 = for ever. */
  auditRetentionDays: { min: 0, max: 36_500 },
  databaseConnections: { min: 1, max: 1000 },
  requestsPerMinute: { min: 0, max: 1_000_000 },
  /** To a week: by then nobody would call it checking. */
  recheckMinutes: { min: 1, max: 10_080 },
  /** A day: longer than any clone. */
  drainSeconds: { min: 0, max: 86_400 },
  /** 0 = an authorization is never kept. With an hour, a revocation upstream would take effect an hour late. */
  grantSeconds: { min: 0, max: 3600 },
  tipsSeconds: { min: 0, max: 86_400 },
  maxUpstreamFetches: { min: 1, max: 10_000 },
  queueSeconds: { min: 0, max: 3600 },
  queueSilentSeconds: { min: 0, max: 60 },
  /** 0 = each response that is made here needs a place. To 64 GiB. */
  heavyMb: { min: 0, max: 65_536 },
  /** 0 = immediately. A minute is the longest that a fill waits. */
  repackIdleSeconds: { min: 0, max: 60 },
  /** To a pebibyte. */
  maxTotalSizeMb: { min: 1, max: 1_073_741_824 },
  /** To 64 GiB, the largest pack that is taken in. */
  fillMaxMb: { min: 1, max: 65_536 },
  /** To a minute: requests wait for it. */
  objectTimeoutSeconds: { min: 0.1, max: 60 },
  /** Each part takes 8 MiB of memory. */
  objectUploadParallel: { min: 1, max: 64 },
  shareWaitSeconds: { min: 1, max: 60 },
  /** From 16 MB, below which an ordinary pack does not fit, to a tebibyte. */
  objectQueueMb: { min: 16, max: 1_048_576 },
  localMaxSizeMb: { min: 1, max: 1_073_741_824 },
  maxConnections: { min: 1, max: 1_000_000 },
  clientRequests: { min: 0, max: 1_000_000 },
  /** From 64 KiB, below which ordinary fetches of big repositories break, to 1 GiB. */
  gitCommandBytes: { min: 64 * 1024, max: 1024 * 1024 * 1024 },
} as const;

/** Names of variables under the prefix that are not keys of the configuration. */
export const OTHER_VARIABLES = [
  "SVC_CONFIG",
  "SVC_URL",
  "SVC_TOKEN",
  "SVC_NODE",
  "SVC_BACKUP_PASSPHRASE",
] as const;
