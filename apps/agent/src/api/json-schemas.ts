/** A piece of JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
export type Json = Readonly<Record<string, unknown>>;

export const text = { type: "string" } as const;
const orNull = (type: string): Json => ({ type: [type, "null"] });
const time = { type: "string", format: "date-time" };
const timeOrNull = { type: ["string", "null"], format: "date-time" };
const boolean = { type: "boolean" };
const count = { type: "integer", minimum: 0 };
const texts = { type: "array", items: text };
const oneOf = (...values: string[]): Json => ({ type: "string", enum: values });
export const reference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

/** An object that has all of the properties, and may have the optional ones. */
export function object(properties: Json, optional: Json = {}): Json {
  return { type: "object", required: Object.keys(properties), properties: { ...properties, ...optional } };
}

const ruleStatus = {
  state: oneOf("ok", "pending", "failed", "missing", "paused"),
  error: orNull("string"),
  last_attempt: timeOrNull,
  last_synced: timeOrNull,
  next_attempt: timeOrNull,
  consecutive_failures: count,
  version: orNull("integer"),
};
const run = object({
  at: time,
  exit_code: orNull("integer"),
  timed_out: boolean,
  duration_ms: { type: "number" },
  stdout_bytes: count,
  stderr_bytes: count,
});
const bootstrap = object({ active: boolean, method: orNull("string") });
const cycle = {
  started_at: time,
  finished_at: time,
  changed: texts,
  unchanged: texts,
  failed: texts,
  missing: { type: "array", items: object({ rule: text, key: text }) },
};

/** The documents of the JSON API by name. */
export const SCHEMAS: Readonly<Record<string, Json>> = {
  RuleStatus: object(ruleStatus, { run }),
  Rule: object(
    {
      name: text,
      description: text,
      key: text,
      target: object({ path: text, format: text, mode: text }),
      ...ruleStatus,
    },
    { run },
  ),
  Enrolment: object({
    key: text,
    engine: text,
    description: text,
    interactive: boolean,
    state: oneOf("pending", "running", "complete", "failed", "skipped"),
    status: oneOf("enrolled", "in progress", "error", "not started"),
    skipped: boolean,
    error: orNull("string"),
  }),
  /** To somebody who is signed in. */
  Status: object(
    {
      version: text,
      time,
      uptime_seconds: count,
      authenticated: { type: "boolean", const: true },
      auth: object(
        {
          method: text,
          token_ttl_seconds: orNull("integer"),
          renewable: boolean,
          expires_at: timeOrNull,
          source: oneOf("environment", "file", "embedded", "login", "peer", "none"),
        },
        { borrowed_from: text },
      ),
      bootstrap,
      store: object({
        driver: oneOf("vault", "embedded"),
        address: text,
        kv_mount: text,
        user_prefix: text,
        reachable: boolean,
        last_error: orNull("string"),
      }),
      username: text,
      sync: object({
        state: oneOf("idle", "running", "waiting", "stale"),
        stale_since: timeOrNull,
        last_cycle_at: timeOrNull,
        next_cycle_at: timeOrNull,
        events: oneOf("connected", "polling", "unsupported"),
      }),
      rules: { type: "object", additionalProperties: reference("RuleStatus") },
      enrolments: { type: "array", items: reference("Enrolment") },
      remotes: { type: "array" },
      config: object({ sources: texts, problems: texts, reload_needed: texts }),
    },
    {
      docker: { type: "object" },
      api: object({ socket: text, present: boolean }),
      peers: object({
        socket: text,
        offers: texts,
        token_handouts: count,
        last_token_handout_at: timeOrNull,
      }),
    },
  ),
  /** Without a store token. */
  PublicStatus: object({
    version: text,
    time,
    authenticated: { type: "boolean", const: false },
    auth: object({ method: text }),
    bootstrap,
  }),
  Cycle: object({ job: text, ...cycle }),
};
