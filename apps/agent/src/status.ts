import { z } from "zod";
import { dockerStatusSchema, type DockerStatus as MutableDockerStatus } from "./docker-view.ts";
import { lentTokensSchema } from "./lent-tokens-view.ts";
import { remoteViewSchema } from "./remote-view.ts";
import { sshAgentStatusSchema } from "./ssh-agent-view.ts";

/*
 * The documents of the JSON API, the pages and `agent status --json`. The types come from the schemas, and so do the API's
 * OpenAPI document and what the command line reads from the daemon. Where only types are imported, no schema is made.
 */

/** The type of a document that is only read. */
type Immutable<T> = T extends readonly (infer Element)[]
  ? readonly Immutable<Element>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;

const text = z.string();
const texts = z.array(text);
/** ISO 8601. */
const time = text.meta({ format: "date-time" });
const count = z.int().nonnegative();

/** The state of one sync rule. */
export const ruleStatusSchema = z
  .object({
    state: z.enum(["ok", "pending", "failed", "missing", "paused"]),
    error: text.nullable(),
    last_attempt: time.nullable(),
    last_synced: time.nullable(),
    next_attempt: time.nullable(),
    consecutive_failures: count,
    version: z
      .int()
      .nullable()
      .describe("Of the secret last written; null before the first sync, and with several secrets"),
    run: z
      .object({
        at: time,
        exit_code: z.int().nullable().describe("Null when it could not be started or was killed"),
        timed_out: z.boolean(),
        duration_ms: z.number(),
        stdout_bytes: count,
        stderr_bytes: count,
      })
      .describe("The last run of the rule's command; absent before the first. Its output is never kept")
      .exactOptional(),
  })
  .meta({ id: "RuleStatus" });
export type RuleStatus = Immutable<z.infer<typeof ruleStatusSchema>>;

/** A rule as configured, with its state; never a value. */
export const ruleViewSchema = z
  .object({
    name: text,
    description: text,
    key: text,
    target: z.object({
      path: text,
      format: text,
      mode: text,
      mounted: z.boolean().describe("The file is on the filesystem mount, and on no disk"),
    }),
    ...ruleStatusSchema.shape,
  })
  .meta({ id: "Rule" });
export type RuleView = Immutable<z.infer<typeof ruleViewSchema>>;

/** The state of one enrolment; never a value. */
const enrolmentStatusSchema = z
  .object({
    key: text.describe("Path of the secret that it makes"),
    engine: text,
    description: text,
    interactive: z.boolean().describe("It needs the user"),
    state: z.enum(["pending", "running", "complete", "failed", "skipped"]),
    status: z
      .enum(["enrolled", "in progress", "error", "not started"])
      .describe("The state as the pages name it"),
    skipped: z.boolean(),
    error: text.nullable(),
  })
  .meta({ id: "Enrolment" });
export type EnrolmentStatus = Immutable<z.infer<typeof enrolmentStatusSchema>>;

/** The filesystem mount; never a value. */
const fuseStatusSchema = z.object({
  mountpoint: text,
  access: z.enum(["read-only", "read-write"]),
  layout: z.enum(["json", "both"]),
  cache_ttl_seconds: z.number(),
  mounted: z.boolean().describe("Whether the kernel has the mount"),
  state: z
    .enum(["starting", "mounted", "refused", "unmounted", "restarting"])
    .describe("State of the daemon's mount server; absent without a running daemon")
    .exactOptional(),
  problem: text.nullable().describe("Why nothing is mounted").exactOptional(),
  omitted_names: count.describe("Names of the store that no file can have").exactOptional(),
  unsaved: z
    .array(z.object({ path: text, reason: text }))
    .describe("Files whose content is only in memory, because the store did not take it")
    .exactOptional(),
});
export type FuseStatus = Immutable<z.infer<typeof fuseStatusSchema>>;

const bootstrapSchema = z.object({ active: z.boolean(), method: text.nullable() });

/** Container volumes; never a value. */
export type DockerStatus = Immutable<MutableDockerStatus>;

/** The state of the daemon, for a signed-in user. */
export const agentStatusSchema = z.object({
  version: text,
  time,
  uptime_seconds: count,
  authenticated: z.boolean(),
  auth: z.object({
    method: text,
    token_ttl_seconds: z.int().nullable(),
    renewable: z.boolean(),
    expires_at: time.nullable(),
    source: z.enum(["environment", "file", "embedded", "login", "peer", "none"]),
    borrowed_from: text.exactOptional(),
  }),
  bootstrap: bootstrapSchema,
  store: z.object({
    driver: z.enum(["vault", "embedded"]),
    address: text,
    kv_mount: text,
    user_prefix: text,
    reachable: z.boolean(),
    last_error: text.nullable(),
  }),
  username: text,
  sync: z.object({
    state: z.enum(["idle", "running", "waiting", "stale"]),
    stale_since: time
      .nullable()
      .describe(
        "Since when no cycle could be completed, also while one is tried; null while files follow the store",
      ),
    last_cycle_at: time.nullable(),
    next_cycle_at: time.nullable(),
    events: z.enum(["connected", "polling", "unsupported"]),
  }),
  rules: z.record(text, ruleStatusSchema),
  enrolments: z.array(enrolmentStatusSchema),
  remotes: z.array(remoteViewSchema).describe("Managed SSH forwards, in the order of ssh.yaml"),
  fuse: fuseStatusSchema.describe("The filesystem mount; absent while it is off").exactOptional(),
  docker: dockerStatusSchema
    .describe("Container volumes; absent while there is nothing to say")
    .exactOptional(),
  api: z
    .object({ socket: text, present: z.boolean() })
    .describe("The API socket; absent while it is off")
    .exactOptional(),
  peers: z
    .object({
      socket: text,
      offers: texts,
      token_handouts: count,
      last_token_handout_at: time.nullable(),
      tokens: lentTokensSchema,
    })
    .describe("The peer socket; absent while it is off")
    .exactOptional(),
  ssh_agent: sshAgentStatusSchema.describe("The SSH agent; absent while it is off").exactOptional(),
  config: z.object({ sources: texts, problems: texts, reload_needed: texts }),
});
export type AgentStatus = Immutable<z.infer<typeof agentStatusSchema>>;

/** The state before a login: nothing about the user, the store or the rules. */
export const publicStatusSchema = z
  .object({
    version: text,
    time,
    authenticated: z.literal(false),
    auth: z.object({ method: text }),
    bootstrap: bootstrapSchema,
  })
  .meta({ id: "PublicStatus" });
export type PublicStatus = Immutable<z.infer<typeof publicStatusSchema>>;

/** The client certificate under `mtls+os`; never its key. */
export interface CertificateStatus {
  /** There is one, it is valid now, and its key is there. */
  readonly enrolled: boolean;
  /** Its common name. */
  readonly identity: string | null;
  /** Place of its key. */
  readonly backend: string;
  readonly expires_at: string | null;
  /** Why it cannot be used. */
  readonly fault: string | null;
}

/** `agent status`: the daemon's state as far as it is known, and what the command line finds out itself. */
export interface CommandStatus extends AgentStatus {
  /** Under `mtls+os`: the command looks at the certificate instead of signing in. */
  readonly certificate?: CertificateStatus;
  /** Whether this user's daemon responds. Absent if it has no socket and no port. */
  readonly daemon?: { readonly running: boolean };
}

/** Result of a cycle, rule by rule. */
export const cycleResultSchema = z.object({
  started_at: time,
  finished_at: time,
  changed: texts,
  unchanged: texts,
  failed: texts,
  missing: z
    .array(z.object({ rule: text, key: text }))
    .describe("Rules whose secret is not stored, each with the path that holds nothing"),
});
export type CycleResult = Immutable<z.infer<typeof cycleResultSchema>>;

/** Interface of the running daemon for its surfaces (web, API, sockets). Results come from memory. */
export interface DaemonView {
  status(): AgentStatus;
  rules(): readonly RuleView[];
  /**
   * Starts a cycle unless one is running (then that one counts). The promise resolves at its end.
   * @param rule of the rules that wait after a failure only this one is tried. Default: all
   */
  syncNow(rule?: string): { readonly job: string; readonly done: Promise<CycleResult> };
  /** A program of the user has just changed a secret: the mount and the volumes look at it again. */
  secretChanged(path: string): void;
  /** Calls back after every change of state until the signal fires. */
  onChange(listener: () => void, signal: AbortSignal): void;
}
