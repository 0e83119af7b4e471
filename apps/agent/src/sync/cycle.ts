import type { Logger } from "@devplat/base";
import type { SecretStore } from "@devplat/secret-store";
import { fileSignature } from "../agent-files/file-signature.ts";
import { expandHome, isMountedRule, secretPaths, type Rule } from "../config/sections/rule.ts";
import { AgentError } from "../errors.ts";
import { inParallel } from "../secrets/parallel.ts";
import { isStoreWide } from "../secrets/store-health.ts";
import { applyPlan, type ApplyParts, type FilePlan } from "./apply.ts";
import { CycleSecrets } from "./content/cycle-secrets.ts";
import type { Renderer } from "./content/rule-content.ts";
import { CycleReport } from "./cycle-report.ts";
import type { PieceOutcome } from "./edit/file-bytes.ts";
import { inWriteOrder, keepFormer, planFiles, type Work } from "./file-plan.ts";
import type { MountedFiles } from "./mounted/mounted-files.ts";
import { includes, type RetryScope } from "./retry-scope.ts";
import { hasSameInputs, isWaiting, newRecord, nextRecord, type RuleEvent } from "./rule-state.ts";
import { runCommand } from "./run-command.ts";
import { traced, type Facts } from "../telemetry/operation.ts";
import type { RuleRecord } from "./state.ts";
import type { TargetPolicy } from "./target/target-policy.ts";

export interface CycleParts extends ApplyParts {
  readonly store: SecretStore;
  readonly renderer: Renderer;
  readonly targets: TargetPolicy;
  /** Files that are on the mount and on no disk. */
  readonly mounted: MountedFiles;
  /** Rules that the user has paused by hand. */
  readonly paused: { read(): Promise<ReadonlySet<string>> };
  readonly logger: Logger;
  readonly home: string;
}

/**
 * The steps of one cycle: {@link Cycle.prepare}, {@link Cycle.write}, {@link Cycle.runCommands}. It does the input and output,
 * and hands every event of a rule to `nextRecord`, which says what it means for the rule's state.
 */
export class Cycle {
  readonly report = new CycleReport();
  readonly #parts: CycleParts;
  readonly #rules: readonly Rule[];
  readonly #signal: AbortSignal;
  readonly #secrets: CycleSecrets;

  constructor(parts: CycleParts, rules: readonly Rule[], signal: AbortSignal) {
    this.#parts = parts;
    this.#rules = rules;
    this.#signal = signal;
    this.#secrets = new CycleSecrets(parts.store, signal);
  }

  /** Finds the work of each rule. @throws SecretStoreError if the store cannot be used at all */
  async prepare(retry: RetryScope): Promise<Work[]> {
    const { clock, state, paused } = this.#parts;
    const { rules: records } = state.document;
    const now = clock.now();
    const pausedByHand = await paused.read();
    const candidates: Rule[] = [];
    for (const rule of this.#rules) {
      if (!rule.enabled) continue;
      const record = (records[rule.name] ??= newRecord(rule));
      if (rule.paused || pausedByHand.has(rule.name)) this.#note(rule.name, { kind: "paused" });
      else if (isWaiting(record, now) && !includes(retry, rule, record))
        this.report.failed(rule.name, record.error ?? "waiting");
      else candidates.push(rule);
    }
    await this.#secrets.prefetch(candidates.flatMap((rule) => pathsOf(rule, this.#recordOf(rule.name))));
    const work = new Map<string, Work>();
    await inParallel(candidates, async (rule) => {
      try {
        if (isMountedRule(rule)) await this.#parts.mounted.check(rule, this.#secrets);
        if (await this.#isUpToDate(rule)) {
          this.#note(rule.name, { kind: "unchanged" });
          this.report.unchanged(rule.name);
        } else work.set(rule.name, await traced("sync.rule", { rule: rule.name }, () => this.#render(rule)));
      } catch (error) {
        if (isStoreWide(error) || this.#signal.aborted) throw error;
        this.#fail(rule.name, error);
      }
    });
    // Rendering ends in any order. The order of writing must not depend on it.
    return this.#rules.flatMap(({ name }) => work.get(name) ?? []);
  }

  /** Brings the files of all rules with work up to date. */
  async write(work: readonly Work[]): Promise<void> {
    const { document } = this.#parts.state;
    const { plans, failures, gone } = await planFiles(work, this.#rules, this.#parts);
    const byRule = new Map(work.map((item) => [item.rule.name, item]));
    for (const [rule, error] of failures) this.#fail(rule, error);
    await inParallel(work, (item) => this.#checkMounted(item));
    const { first, rest } = inWriteOrder(plans);
    for (const plan of first) await this.#writeFile(plan, byRule);
    // Mostly waiting for the disk; different files have no order.
    await inParallel(rest, (plan) => this.#writeFile(plan, byRule));
    for (const rule of gone) if (!this.report.failures.has(rule)) delete document.rules[rule];
    const used = new Set(Object.values(document.rules).map((record) => record.target.file));
    for (const file of Object.keys(document.files)) if (!used.has(file)) delete document.files[file];
  }

  /** Runs the commands of all rules whose files have changed. A command that several rules name runs once. */
  async runCommands(): Promise<void> {
    const { clock, state, logger } = this.#parts;
    const pending = this.#rules.flatMap(({ name, run, enabled }) => {
      const record = state.document.rules[name];
      const isDue = enabled && record?.run_pending === true && record.state === "ok";
      return run !== undefined && isDue ? [{ name, run }] : [];
    });
    for (const group of Map.groupBy(pending, ({ run }) => JSON.stringify(run.command)).values()) {
      const [first] = group;
      if (first === undefined || this.#signal.aborted) continue;
      const timeoutMs = Math.max(...group.map(({ run }) => run.timeout));
      const rules = group.map(({ name }) => name);
      const facts: Facts<"sync.command"> = { rules };
      const run = await traced("sync.command", facts, async () => {
        const ended = await runCommand({ command: first.run.command, timeoutMs }, clock, this.#signal);
        facts.timed_out = ended.timed_out;
        if (ended.exit_code !== null) facts.exit_code = ended.exit_code;
        return ended;
      });
      logger.info({ rules, exit_code: run.exit_code, duration_ms: run.duration_ms }, "command run");
      for (const rule of rules) {
        const record = this.#note(rule, { kind: "command_ended", run });
        if (record.state === "failed") this.#reportFailure(rule, record);
      }
    }
  }

  async #isUpToDate(rule: Rule): Promise<boolean> {
    const { state, home, renderer } = this.#parts;
    const record = this.#recordOf(rule.name);
    const stamps = await Promise.all(
      pathsOf(rule, record).map(async (path) => [path, await this.#secrets.stamp(path)] as const),
    );
    const config = renderer.fingerprint(rule, record.environment);
    if (!hasSameInputs(record, new Map(stamps), config)) return false;
    if (rule.target.mount !== undefined) return !isMountedRule(rule) || this.#parts.mounted.hasSameBase(rule);
    const known = state.document.files[record.target.file]?.signature;
    return known !== undefined && known === (await fileSignature(expandHome(rule.target.path, home)));
  }

  async #render(rule: Rule): Promise<Work> {
    const rendered = await this.#parts.renderer.render(rule, this.#secrets);
    if (rendered.kind === "content") {
      const { content, inputs, version, environment } = rendered;
      return { rule, record: this.#recordOf(rule.name), content, inputs, version, environment };
    }
    const message = nothingStored(rendered.path);
    if (rule.target.on_missing === "error") throw new AgentError("secret_missing", message);
    this.report.missing.set(rule.name, rendered.path);
    // Once, not in each cycle.
    if (this.#recordOf(rule.name).state !== "missing")
      this.#parts.logger.warn({ rule: rule.name, key: rendered.path }, "secret missing");
    const record = this.#note(rule.name, { kind: "missing", message });
    return { rule, record, content: undefined, inputs: {}, version: null, environment: [] };
  }

  /** Makes a file of the mount, only to find out whether that works. It is made again for each reader. */
  async #checkMounted({ rule, record, content, inputs, version }: Work): Promise<void> {
    if (!isMountedRule(rule) || content === undefined) return;
    const { state, mounted, renderer } = this.#parts;
    try {
      const base = await mounted.base(rule);
      await mounted.bytes(rule, content, base, this.#signal);
      mounted.noteBase(rule, base);
    } catch (error) {
      if (this.#signal.aborted) throw error;
      this.#fail(rule.name, error);
      return;
    }
    if (rule.run !== undefined) {
      this.#note(rule.name, { kind: "command_due" });
      await state.save();
    }
    keepFormer(state.document, record, rule.name);
    // Values of the environment could be guessed from a hash, and names of keys can be values: the state has neither.
    const facts = { inputs, environment: [], config: renderer.fingerprint(rule, []), version };
    const keys = { managed: [], found: [] };
    this.#note(rule.name, { kind: "written", rule, file: "", content: facts, keys });
    this.report.changed(rule.name);
  }

  #writeFile(plan: FilePlan, work: ReadonlyMap<string, Work>): Promise<void> {
    const facts: Facts<"sync.file"> = { rules: plan.pieces.map((piece) => piece.rule) };
    return traced("sync.file", facts, async () => {
      facts.changed = await this.#apply(plan, work);
      facts.failed = plan.pieces.filter(({ rule }) => this.report.failures.has(rule)).length;
    });
  }

  /** @returns whether the file was changed. A failure is that of its rules */
  async #apply(plan: FilePlan, work: ReadonlyMap<string, Work>): Promise<boolean> {
    const { state, logger } = this.#parts;
    const rules = plan.pieces.map((piece) => piece.rule);
    try {
      const target = await this.#targetNow(plan);
      const applied = await applyPlan({ ...plan, target }, this.#parts, this.#signal, async (changed) => {
        // Before the file changes: a crash right after it must not lose the command.
        const withCommand = changed.filter((name) => work.get(name)?.rule.run !== undefined);
        for (const name of withCommand) this.#note(name, { kind: "command_due" });
        if (withCommand.length > 0) await state.save();
      });
      if (applied.changed) logger.info({ path: plan.path, rules }, "file written");
      for (const [rule, outcome] of applied.outcomes) {
        if (outcome.kind === "failed") this.#fail(rule, outcome.error);
        else this.#noteApplied(plan, outcome, work.get(rule));
      }
      return applied.changed;
    } catch (error) {
      if (error === this.#signal.reason) throw error;
      for (const rule of rules) this.#fail(rule, error);
      return false;
    }
  }

  /** The plan's target with its folders as they are now: a file written just before may have made them. */
  async #targetNow({ path, remote, target }: FilePlan): Promise<FilePlan["target"]> {
    if (target.missingFolders.length === 0) return target;
    const now = await this.#parts.targets.resolve(path, remote);
    if (now.file === target.file) return now;
    throw new AgentError("target_busy", `cannot write ${path}: it leads elsewhere now`, { remedy: "retry" });
  }

  /** @param item undefined for a rule that is no longer configured */
  #noteApplied(
    plan: FilePlan,
    keys: Extract<PieceOutcome, { kind: "applied" }>,
    item: Work | undefined,
  ): void {
    if (item === undefined) return;
    const { rule, inputs, environment, version } = item;
    if (item.content === undefined) {
      this.#note(rule.name, { kind: "cleaned", keys });
      if (keys.changed) this.report.changed(rule.name);
      return;
    }
    const config = this.#parts.renderer.fingerprint(rule, environment);
    const content = { inputs, environment, config, version };
    this.#note(rule.name, { kind: "written", rule, file: plan.target.file, content, keys });
    if (keys.changed) this.report.changed(rule.name);
    else this.report.unchanged(rule.name);
  }

  #fail(rule: string, error: unknown): void {
    this.#reportFailure(rule, this.#note(rule, { kind: "failed", error }));
  }

  #reportFailure(rule: string, { error, consecutive_failures }: RuleRecord): void {
    this.report.failed(rule, error ?? "");
    this.#parts.logger.warn({ rule, error, consecutive_failures }, "rule failed");
  }

  #note(rule: string, event: RuleEvent): RuleRecord {
    const { state, clock, mounted } = this.#parts;
    const before = this.#recordOf(rule);
    const next = (state.document.rules[rule] = nextRecord(before, event, clock.now()));
    if (event.kind === "written" || before.state !== next.state) mounted.noteEvent(rule);
    return next;
  }

  #recordOf(rule: string): RuleRecord {
    const record = this.#parts.state.document.rules[rule];
    if (record === undefined) throw new Error(`no record of the rule ${rule}`);
    return record;
  }
}

/** Message for a secret that is not stored. */
export function nothingStored(path: string): string {
  return `nothing is stored under ${path}`;
}

/** The secrets that a rule reads as configured, and those that it has read. */
function pathsOf(rule: Rule, record: RuleRecord): string[] {
  return [...new Set([...secretPaths(rule), ...Object.keys(record.inputs)])];
}
