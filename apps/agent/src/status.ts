/** The state of one sync rule, as the API, the UI and `agent status --json` show it. Times are ISO 8601. */
export interface RuleStatus {
  readonly state: "ok" | "pending" | "failed" | "missing" | "paused";
  readonly error: string | null;
  readonly last_attempt: string | null;
  readonly last_synced: string | null;
  readonly next_attempt: string | null;
  readonly consecutive_failures: number;
  /** Version of the secret last written; null before the first sync or with several secrets. */
  readonly version: number | null;
  /** The last run of the rule's command; absent before the first. Its output is never kept. */
  readonly run?: {
    readonly at: string;
    /** Null when it could not be started or was killed. */
    readonly exit_code: number | null;
    readonly timed_out: boolean;
    readonly duration_ms: number;
    readonly stdout_bytes: number;
    readonly stderr_bytes: number;
  };
}

/** A rule as configured, with its state; never a value. */
export interface RuleView extends RuleStatus {
  readonly name: string;
  readonly description: string;
  readonly key: string;
  readonly target: { readonly path: string; readonly format: string; readonly mode: string };
}

/** The state of one enrolment; never a value. */
export interface EnrolmentStatus {
  /** Path of the secret that it makes. */
  readonly key: string;
  readonly engine: string;
  readonly description: string;
  /** It needs the user. */
  readonly interactive: boolean;
  readonly state: "pending" | "running" | "complete" | "failed" | "skipped";
  /** As the UI names it. */
  readonly status: "enrolled" | "in progress" | "error" | "not started";
  readonly skipped: boolean;
  readonly error: string | null;
}

/** The client certificate under `mtls+os`; never its key. */
export interface CertificateStatus {
  /** There is one, it is valid now, and its key is there. */
  readonly enrolled: boolean;
  /** Its common name. */
  readonly identity: string | null;
  /** Where its key is. */
  readonly backend: string;
  readonly expires_at: string | null;
  /** Why it cannot be used. */
  readonly fault: string | null;
}

/** Container volumes; never a value. */
export interface DockerStatus {
  readonly enabled: boolean;
  /** The plugin's socket. */
  readonly socket: string;
  /** The file that sends Docker to it. */
  readonly registration: {
    readonly path: string;
    /** The line that it should hold. */
    readonly expected: string;
    readonly state: "absent" | "agrees" | "names a different socket";
  };
}

/** `GET /api/v1/status` of somebody who is signed in. */
export interface AgentStatus {
  readonly version: string;
  readonly time: string;
  readonly uptime_seconds: number;
  readonly authenticated: boolean;
  readonly auth: {
    readonly method: string;
    readonly token_ttl_seconds: number | null;
    readonly renewable: boolean;
    readonly expires_at: string | null;
    readonly source: "environment" | "file" | "embedded" | "login" | "peer" | "none";
    readonly borrowed_from?: string;
  };
  readonly bootstrap: { readonly active: boolean; readonly method: string | null };
  /** Under `mtls+os`, of the command line: it looks at the certificate instead of signing in. */
  readonly certificate?: CertificateStatus;
  readonly store: {
    readonly driver: "vault" | "embedded";
    readonly address: string;
    readonly kv_mount: string;
    readonly user_prefix: string;
    readonly reachable: boolean;
    readonly last_error: string | null;
  };
  readonly username: string;
  /** Of the command line: whether this user's daemon answers; absent where it cannot be asked. */
  readonly daemon?: { readonly running: boolean };
  readonly sync: {
    readonly state: "idle" | "running" | "waiting" | "stale";
    /** Since when no cycle could be completed, also while one is tried; null while files follow the store. */
    readonly stale_since: string | null;
    readonly last_cycle_at: string | null;
    readonly next_cycle_at: string | null;
    readonly events: "connected" | "polling" | "unsupported";
  };
  readonly rules: Readonly<Record<string, RuleStatus>>;
  readonly enrolments: readonly EnrolmentStatus[];
  readonly remotes: readonly unknown[];
  /** Absent while there is nothing to say. */
  readonly docker?: DockerStatus;
  /** The API socket; absent while it is off. */
  readonly api?: { readonly socket: string; readonly present: boolean };
  /** The peer socket; absent while it is off. Times are ISO 8601. */
  readonly peers?: {
    readonly socket: string;
    readonly offers: readonly string[];
    readonly token_handouts: number;
    readonly last_token_handout_at: string | null;
  };
  readonly config: {
    readonly sources: readonly string[];
    readonly problems: readonly string[];
    readonly reload_needed: readonly string[];
  };
}

/** What a cycle did, rule by rule. */
export interface CycleResult {
  readonly started_at: string;
  readonly finished_at: string;
  readonly changed: readonly string[];
  readonly unchanged: readonly string[];
  readonly failed: readonly string[];
  /** Rules whose secret is not stored, each with the path that holds nothing. */
  readonly missing: readonly { readonly rule: string; readonly key: string }[];
}

/** What the surfaces (web, API, sockets) may ask of the running daemon. Answers come from memory. */
export interface DaemonView {
  status(): AgentStatus;
  rules(): readonly RuleView[];
  /**
   * Starts a cycle unless one is running (then that one counts). The promise resolves at its end.
   * @param rule of the rules that wait after a failure only this one is tried. Default: all
   */
  syncNow(rule?: string): { readonly job: string; readonly done: Promise<CycleResult> };
  /** Calls back after every change of state until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void;
}
