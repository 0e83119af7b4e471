import type { AgentStatus, CycleResult, DaemonView, RuleView } from "../../status.ts";
import { ChangeListeners } from "../../change-listeners.ts";

/** A daemon that only holds a state, for tests of the surfaces. */
export class MemoryView implements DaemonView {
  readonly #listeners = new ChangeListeners();
  #status: AgentStatus = signedIn;
  #rules: readonly RuleView[] = [];
  /** Result of the next cycles. */
  cycle: () => Promise<CycleResult> = async () => emptyCycle;
  readonly changedSecrets: string[] = [];
  cycles = 0;
  /** The rule that each cycle was asked for; undefined for all. */
  readonly asked: (string | undefined)[] = [];

  status(): AgentStatus {
    const rules = Object.fromEntries(
      this.#rules.map(({ name, description: _description, key: _key, target: _target, ...status }) => [
        name,
        status,
      ]),
    );
    return { ...this.#status, rules };
  }

  rules(): readonly RuleView[] {
    return this.#rules;
  }

  syncNow(rule?: string): { readonly job: string; readonly done: Promise<CycleResult> } {
    this.cycles += 1;
    this.asked.push(rule);
    return { job: `cycle-${this.cycles}`, done: this.cycle() };
  }

  secretChanged(path: string): void {
    this.changedSecrets.push(path);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#listeners.add(listener, signal);
  }

  /** Changes parts of the state and tells the listeners. */
  set(change: { status?: Partial<AgentStatus>; rules?: readonly RuleView[] }): void {
    this.#status = { ...this.#status, ...change.status };
    this.#rules = change.rules ?? this.#rules;
    this.#listeners.changed();
  }
}

export const emptyCycle: CycleResult = {
  started_at: "2026-11-21T09:00:00.000Z",
  finished_at: "2026-11-21T09:00:01.000Z",
  changed: [],
  unchanged: [],
  failed: [],
  missing: [],
};

export const signedIn: AgentStatus = {
  version: "0.1.0",
  time: "2026-11-21T09:05:00.000Z",
  uptime_seconds: 300,
  authenticated: true,
  auth: {
    method: "token",
    token_ttl_seconds: 3600,
    renewable: true,
    expires_at: "2026-11-21T17:30:00.000Z",
    source: "file",
  },
  bootstrap: { active: false, method: null },
  store: {
    driver: "vault",
    address: "https://vault.example.test:8200",
    kv_mount: "kv",
    user_prefix: "users/",
    reachable: true,
    last_error: null,
  },
  username: "ada",
  sync: {
    state: "idle",
    stale_since: null,
    last_cycle_at: "2026-11-21T09:00:01.000Z",
    next_cycle_at: "2026-11-21T09:15:00.000Z",
    events: "connected",
  },
  rules: {},
  enrolments: [],
  remotes: [],
  config: { sources: ["/home/ada/.config/daemon/config.yaml"], problems: [], reload_needed: [] },
};

/** A rule that is in step, with changes. */
export function ruleView(name: string, change: Partial<RuleView> = {}): RuleView {
  return {
    name,
    description: "",
    key: `tools/${name}`,
    target: { path: `~/.config/${name}/config.yaml`, format: "yaml", mode: "0600", mounted: false },
    state: "ok",
    error: null,
    last_attempt: "2026-11-21T09:00:00.000Z",
    last_synced: "2026-11-21T09:00:00.000Z",
    next_attempt: "2026-11-21T09:15:00.000Z",
    consecutive_failures: 0,
    version: 3,
    ...change,
  };
}
