import type { Clock } from "@devplat/base";
import type { SignInState } from "../auth/sign-in.ts";
import type { AgentStatus, EnrolmentStatus, RuleStatus, RuleView } from "../status.ts";
import { UNTRIED, iso, statusOf } from "./rule-state.ts";
import { isMountedRule, keyText, targetText, type Rule } from "../config/sections/rule.ts";
import type { StateDocument } from "./state.ts";

/** Facts that do not change while the daemon runs. */
export interface StatusFacts {
  readonly version: string;
  readonly authMethod: string;
  readonly driver: "vault" | "embedded";
  /** `store.address`, or the embedded store's file. */
  readonly address: string;
  readonly kvMount: string;
  readonly userPrefix: string;
  /** `fuse.mountpoint` as configured. */
  readonly mountpoint: string;
  readonly username: string;
  readonly sources: readonly string[];
  readonly problems: readonly string[];
  /** Sections of the configuration that wait for a new start. Default: none. */
  readonly reloadNeeded?: readonly string[];
}

export interface StatusInputs {
  readonly signIn: SignInState;
  readonly document: StateDocument;
  /** See StoreHealth.fault. Default: nothing is known but the state of the last cycle. */
  readonly storeFault?: string | null | undefined;
  readonly rules: readonly Rule[];
  /** Rules that the user has paused, where no daemon has taken that up. Default: as the last cycle found them. */
  readonly paused?: ReadonlySet<string>;
  readonly running: boolean;
  /** Milliseconds since the epoch. */
  readonly nextCycleAt: number | null;
  readonly events: AgentStatus["sync"]["events"];
  /** Default: none. */
  readonly enrolments?: readonly EnrolmentStatus[];
  /** Default: not a method with certificates. */
  readonly bootstrap?: AgentStatus["bootstrap"];
}

/** The status of an authentication method without certificates. */
export const NO_BOOTSTRAP: AgentStatus["bootstrap"] = { active: false, method: null };

/** Makes the status from facts in memory. It sends no request. */
export class StatusReport {
  #facts: StatusFacts;
  readonly #clock: Clock;
  readonly #startedAt: number;

  constructor(facts: StatusFacts, clock: Clock) {
    this.#facts = facts;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** The configuration was read again. */
  update(facts: Pick<StatusFacts, "sources" | "problems" | "reloadNeeded" | "mountpoint">): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  status(inputs: StatusInputs): AgentStatus {
    const { signIn, document, rules, nextCycleAt, events } = inputs;
    const facts = this.#facts;
    const expiresAt = signIn.info?.expiresAt;
    const ttlMs = expiresAt === undefined ? undefined : Math.max(0, expiresAt - this.#clock.now());
    return {
      version: facts.version,
      time: iso(this.#clock.now()),
      uptime_seconds: Math.round((this.#clock.monotonic() - this.#startedAt) / 1000),
      authenticated: signIn.authenticated,
      auth: {
        method: facts.authMethod,
        token_ttl_seconds: ttlMs === undefined ? null : Math.round(ttlMs / 1000),
        renewable: signIn.info?.renewable ?? false,
        expires_at: expiresAt === undefined ? null : iso(expiresAt),
        source: signIn.source,
        ...(signIn.borrowedFrom !== undefined && { borrowed_from: signIn.borrowedFrom }),
      },
      bootstrap: inputs.bootstrap ?? NO_BOOTSTRAP,
      store: {
        driver: facts.driver,
        address: facts.address,
        kv_mount: facts.kvMount,
        user_prefix: facts.userPrefix,
        // Without a token there was no request, or a refusal. The store counts as reachable unless the sign-in failed on it.
        reachable: signIn.authenticated ? isReachable(inputs) : signIn.storeUnreachable !== true,
        last_error: signIn.reason ?? inputs.storeFault ?? document.last_error,
      },
      username: facts.username,
      sync: {
        state: syncState(inputs),
        stale_since: document.stale_since,
        last_cycle_at: document.last_cycle_at,
        next_cycle_at: nextCycleAt === null ? null : iso(nextCycleAt),
        events,
      },
      rules: Object.fromEntries(rules.map((rule) => [rule.name, ruleStatus(rule, document, inputs.paused)])),
      enrolments: inputs.enrolments ?? [],
      remotes: [],
      config: { sources: facts.sources, problems: facts.problems, reload_needed: facts.reloadNeeded ?? [] },
    };
  }

  /** @param paused as {@link StatusInputs} */
  rules(rules: readonly Rule[], document: StateDocument, paused?: ReadonlySet<string>): RuleView[] {
    return rules.map((rule) => ({
      ...ruleStatus(rule, document, paused),
      name: rule.name,
      description: rule.description,
      key: keyText(rule),
      target: {
        path: targetText(rule, this.#facts.mountpoint),
        format: rule.target.format,
        mode: isMountedRule(rule) ? "0400" : rule.target.mode.toString(8).padStart(4, "0"),
        mounted: isMountedRule(rule),
      },
    }));
  }
}

/** The newest request of any part of the program decides. */
function isReachable({ storeFault, document }: StatusInputs): boolean {
  return storeFault === undefined ? document.stale_since === null : storeFault === null;
}

function syncState({ running, signIn, document }: StatusInputs): AgentStatus["sync"]["state"] {
  if (running) return "running";
  if (!signIn.authenticated) return "waiting";
  return document.stale_since === null ? "idle" : "stale";
}

function ruleStatus(rule: Rule, document: StateDocument, paused?: ReadonlySet<string>): RuleStatus {
  const record = document.rules[rule.name];
  const isPaused = rule.paused || paused?.has(rule.name) === true;
  if (record !== undefined) {
    const status = statusOf(record);
    if (paused === undefined || isPaused === (status.state === "paused")) return status;
    return { ...status, state: isPaused ? "paused" : "pending" };
  }
  return { ...UNTRIED, state: isPaused ? "paused" : "pending" };
}
