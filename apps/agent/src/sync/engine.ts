import type { Logger } from "@devplat/base";
import type { SecretStore } from "@devplat/secret-store";
import { AgentError, publicMessage } from "../errors.ts";
import type { CycleResult } from "../status.ts";
import type { PieceOutcome } from "./edit/file-edit.ts";
import { applyPlan, previewPlan, type ApplyParts, type FilePlan } from "./apply.ts";
import { isStoreWide } from "../secrets/store-health.ts";
import { CycleSecrets, inParallel } from "./content/cycle-secrets.ts";
import { exposedFiles, type ExposedFile } from "./target/exposed-files.ts";
import { inWriteOrder, planFiles, type Work } from "./file-plan.ts";
import { iso, isWaiting, noteFailure, noteMissing, notePaused, noteSuccess, recordOf } from "./records.ts";
import type { ChangedFile } from "./edit/preview-text.ts";
import type { Renderer } from "./content/render.ts";
import { expandHome, mayReadOthers, secretPaths, type Rule } from "../config/sections/rule.ts";
import { runCommand, runFailure } from "./run-command.ts";
import type { RuleRecord } from "./state.ts";
import type { TargetPolicy } from "./target/target-policy.ts";
import { valueText } from "./content/value-text.ts";
import { finishInPlace } from "./target/in-place.ts";
import { fileSignature } from "../agent-files/file-signature.ts";
import { removeLeftovers } from "./target/writer.ts";

export interface SyncEngineParts extends ApplyParts {
  readonly store: SecretStore;
  readonly renderer: Renderer;
  readonly targets: TargetPolicy;
  /** Default: none. */
  readonly paused?: PausedByHand;
  readonly logger: Logger;
  readonly home: string;
}

/** Rules that somebody has paused by hand. */
interface PausedByHand {
  read(): Promise<ReadonlySet<string>>;
}

/**
 * Which of the rules that wait after a failure are tried nevertheless: all or none; the one of this name, as somebody asked; or those
 * that may read one of these secrets, as it has changed.
 */
export type Hurry = boolean | string | ReadonlySet<string>;

export interface CycleOptions {
  /** See {@link Hurry}. Default: none. */
  readonly force?: Hurry;
  /** Called whenever a rule's state has changed. */
  readonly onProgress?: () => void;
}

/** What `--dry-run` shows of one file. Texts, not values: whoever prints them masks them. */
export interface PreviewedFile extends ChangedFile {
  readonly rules: readonly string[];
}

export interface Preview {
  readonly files: readonly PreviewedFile[];
  readonly failures: ReadonlyMap<string, string>;
  readonly missing: ReadonlyMap<string, string>;
}

/** Brings files in step with secrets, one cycle at a time. Holds no timer; the daemon's loop calls it. */
export class SyncEngine {
  readonly #parts: SyncEngineParts;
  #rules: readonly Rule[];
  #swept = false;

  constructor(parts: SyncEngineParts, rules: readonly Rule[]) {
    this.#parts = parts;
    this.#rules = rules;
  }

  get rules(): readonly Rule[] {
    return this.#rules;
  }

  /**
   * Takes up a changed configuration. Not while a cycle runs.
   * @param allowed `sync.allowed_targets`
   * @param ownFiles see TargetPolicy
   */
  configure(rules: readonly Rule[], allowed: readonly string[], ownFiles: readonly string[]): void {
    this.#rules = rules;
    this.#parts.targets.configure(allowed, ownFiles);
  }

  /** The files of all rules, links not followed and followed. */
  targetFiles(): string[] {
    const { state, home } = this.#parts;
    const files = this.#rules.flatMap((rule) => {
      const known = state.document.rules[rule.name]?.target.file ?? "";
      return rule.enabled && !rule.paused ? [expandHome(rule.target.path, home), known] : [];
    });
    return [...new Set(files.filter((file) => file !== ""))];
  }

  /** See {@link exposedFiles}. */
  exposedFiles(): Promise<readonly ExposedFile[]> {
    return exposedFiles(this.#rules, this.#parts.home);
  }

  /** Whether somebody else has changed one of {@link targetFiles} since the last cycle. */
  async isTouched(path: string): Promise<boolean> {
    const { state, home } = this.#parts;
    const records = this.#rules.flatMap((rule) => state.document.rules[rule.name] ?? []);
    const own = records.find(({ target }) => target.file === path || expandHome(target.path, home) === path);
    const known = own === undefined ? undefined : state.document.files[own.target.file]?.signature;
    return known !== undefined && known !== (await fileSignature(path));
  }

  /**
   * One cycle: versions first, values only of rules that have something to do, every rule on its own.
   * @throws SecretStoreError when the store as a whole cannot be used; files and states of rules stay as they are
   */
  async cycle(signal: AbortSignal, options: CycleOptions = {}): Promise<CycleResult> {
    const { state, clock } = this.#parts;
    const { document } = state;
    const started = iso(clock.now());
    await this.#sweep();
    await this.#finishInPlace();
    const tally = new Tally();
    try {
      const work = await this.#prepare(signal, options.force ?? false, tally);
      options.onProgress?.();
      await this.#write(work, signal, tally);
      await state.save();
      await this.#runCommands(signal, tally);
      document.stale_since = null;
      document.last_error = null;
      document.last_cycle_at = iso(clock.now());
    } catch (error) {
      if (isStoreWide(error) && !signal.aborted) {
        document.stale_since ??= iso(clock.now());
        document.last_error = publicMessage(error);
      }
      throw error;
    } finally {
      await state.save();
      options.onProgress?.();
    }
    return { started_at: started, finished_at: iso(clock.now()), ...tally.result(this.#order()) };
  }

  /**
   * The variables that rules of the format dotenv would write, by name; writes nothing.
   * @throws AgentError `secret_missing`, and whatever rendering throws
   */
  async variables(rules: readonly Rule[], signal: AbortSignal): Promise<Map<string, string>> {
    const secrets = new CycleSecrets(this.#parts.store, signal);
    const variables = new Map<string, string>();
    for (const rule of rules) {
      const rendered = await this.#parts.renderer.render(rule, secrets);
      if (rendered.kind === "missing") {
        throw nothingStored(rendered.path);
      }
      for (const [name, value] of rendered.content) variables.set(name, valueText(value));
    }
    return variables;
  }

  /** What a cycle would write, without writing anything anywhere. @throws SecretStoreError */
  async preview(signal: AbortSignal): Promise<Preview> {
    const tally = new Tally();
    const work = await this.#prepare(signal, true, tally);
    const { plans, failures } = await planFiles(work, this.#rules, this.#parts);
    const failed = new Map(tally.failures);
    for (const [rule, error] of failures) failed.set(rule, publicMessage(error));
    const files: PreviewedFile[] = [];
    for (const plan of plans) {
      try {
        const { merged, existing } = await previewPlan(plan, this.#parts.state, signal);
        for (const [rule, outcome] of merged.outcomes) {
          if (outcome.kind === "failed") failed.set(rule, publicMessage(outcome.error));
        }
        const rules = plan.pieces.map((piece) => piece.rule);
        files.push({ path: plan.path, rules, format: plan.format, existing, next: merged.content });
      } catch (error) {
        if (signal.aborted) throw error;
        for (const piece of plan.pieces) failed.set(piece.rule, publicMessage(error));
      }
    }
    const missing = [...tally.missing].map(([rule, key]) => [rule, nothingStored(key).message] as const);
    return { files, failures: failed, missing: new Map(missing) };
  }

  /** Finds what has to be done, rule by rule. @throws SecretStoreError if the store cannot be used at all */
  async #prepare(signal: AbortSignal, force: Hurry, tally: Tally): Promise<Work[]> {
    const { store, clock, state } = this.#parts;
    const secrets = new CycleSecrets(store, signal);
    const now = clock.now();
    const pausedByHand = (await this.#parts.paused?.read()) ?? new Set();
    const candidates: { rule: Rule; record: RuleRecord }[] = [];
    for (const rule of this.#rules) {
      if (!rule.enabled) continue;
      const record = recordOf(state.document, rule);
      if (rule.paused || pausedByHand.has(rule.name)) notePaused(record);
      else if (isWaiting(record, now) && !isHurried(rule, record, force))
        tally.failed(rule.name, record.error ?? "waiting");
      else candidates.push({ rule, record });
    }
    await secrets.prefetch(
      candidates.flatMap(({ rule, record }) => [...secretPaths(rule), ...Object.keys(record.inputs)]),
    );
    const work: Work[] = [];
    await inParallel(candidates, async ({ rule, record }) => {
      try {
        if (await this.#isUpToDate(rule, record, secrets)) {
          record.last_attempt = iso(now);
          tally.unchanged(rule.name);
          return;
        }
        work.push(await this.#render(rule, record, secrets, tally));
      } catch (error) {
        if (isStoreWide(error) || signal.aborted) throw error;
        this.#fail(rule.name, record, error, tally);
      }
    });
    // Rendering finishes in any order; what is written must not depend on it.
    const order = this.#order();
    return work.toSorted((a, b) => (order.get(a.rule.name) ?? 0) - (order.get(b.rule.name) ?? 0));
  }

  /** Each rule's place in the configuration. */
  #order(): Map<string, number> {
    return new Map(this.#rules.map((rule, index) => [rule.name, index]));
  }

  async #isUpToDate(rule: Rule, record: RuleRecord, secrets: CycleSecrets): Promise<boolean> {
    const { state, home, renderer } = this.#parts;
    const stamps = await Promise.all(
      [...new Set([...secretPaths(rule), ...Object.keys(record.inputs)])].map(
        async (path) => [path, await secrets.stamp(path)] as const,
      ),
    );
    if (record.state !== "ok" || record.run_pending) return false;
    if (stamps.some(([path, stamp]) => stamp === undefined || record.inputs[path] !== stamp)) return false;
    if (record.config !== renderer.fingerprint(rule, record.environment)) return false;
    const known = state.document.files[record.target.file]?.signature;
    return known !== undefined && known === (await fileSignature(expandHome(rule.target.path, home)));
  }

  async #render(rule: Rule, record: RuleRecord, secrets: CycleSecrets, tally: Tally): Promise<Work> {
    const { renderer, clock } = this.#parts;
    const rendered = await renderer.render(rule, secrets);
    if (rendered.kind === "content") {
      const { content, inputs, version, environment } = rendered;
      return { rule, record, content, inputs, version, environment };
    }
    const error = nothingStored(rendered.path);
    if (rule.target.on_missing === "error") throw error;
    tally.missing.set(rule.name, rendered.path);
    // Once, not in each cycle.
    if (record.state !== "missing")
      this.#parts.logger.warn({ rule: rule.name, key: rendered.path }, "secret missing");
    noteMissing(record, error.message, clock.now());
    return { rule, record, content: undefined, inputs: {}, version: null, environment: [] };
  }

  async #write(work: readonly Work[], signal: AbortSignal, tally: Tally): Promise<void> {
    const { state } = this.#parts;
    const { plans, failures, gone } = await planFiles(work, this.#rules, this.#parts);
    const byRule = new Map(work.map((item) => [item.rule.name, item]));
    for (const [rule, error] of failures) this.#failByName(rule, error, tally);
    const { first, rest } = inWriteOrder(plans);
    for (const plan of first) await this.#writeFile(plan, byRule, signal, tally);
    // Mostly waiting for the disk; different files have no order.
    await inParallel(rest, (plan) => this.#writeFile(plan, byRule, signal, tally));
    for (const rule of gone) if (!tally.failures.has(rule)) delete state.document.rules[rule];
    const used = new Set(Object.values(state.document.rules).map((record) => record.target.file));
    for (const file of Object.keys(state.document.files))
      if (!used.has(file)) delete state.document.files[file];
  }

  async #writeFile(
    plan: FilePlan,
    work: ReadonlyMap<string, Work>,
    signal: AbortSignal,
    tally: Tally,
  ): Promise<void> {
    const { state, logger } = this.#parts;
    try {
      const applied = await applyPlan(await this.#current(plan), this.#parts, signal, async (rules) => {
        // Before the file changes: a crash right after it must not lose the command.
        const withCommand = rules.filter((name) => work.get(name)?.rule.run !== undefined);
        for (const name of withCommand) this.#recordByName(name).run_pending = true;
        if (withCommand.length > 0) await state.save();
      });
      if (applied.changed)
        logger.info({ path: plan.path, rules: plan.pieces.map((piece) => piece.rule) }, "file written");
      for (const [rule, outcome] of applied.outcomes) {
        if (outcome.kind === "failed") this.#failByName(rule, outcome.error, tally);
        else this.#noteApplied(rule, plan, outcome, work.get(rule), tally);
      }
    } catch (error) {
      if (error === signal.reason) throw error;
      for (const piece of plan.pieces) this.#failByName(piece.rule, error, tally);
    }
  }

  /** The plan with its folders as they are now: a file written just before may have made them. */
  async #current(plan: FilePlan): Promise<FilePlan> {
    if (plan.target.missingFolders.length === 0) return plan;
    const target = await this.#parts.targets.resolve(plan.path, plan.remote);
    if (target.file === plan.target.file) return { ...plan, target };
    throw new AgentError("target_busy", `cannot write ${plan.path}: it leads elsewhere now`, {
      remedy: "retry",
    });
  }

  #noteApplied(
    name: string,
    plan: FilePlan,
    outcome: Extract<PieceOutcome, { kind: "applied" }>,
    item: Work | undefined,
    tally: Tally,
  ): void {
    const { renderer, clock } = this.#parts;
    if (item === undefined) return;
    const { rule, record } = item;
    record.managed = outcome.managed.map((leaf) => [...leaf]);
    record.found = outcome.found.map((leaf) => [...leaf]);
    if (item.content === undefined) {
      if (outcome.changed) tally.changed(name);
      return;
    }
    const { format, dialect, on_remove: onRemove, allow_tracked: allowTracked } = rule.target;
    record.target = {
      path: rule.target.path,
      file: plan.target.file,
      format,
      dialect: dialect ?? null,
      on_remove: onRemove,
      allow_tracked: allowTracked,
    };
    record.inputs = { ...item.inputs };
    record.environment = [...item.environment];
    record.config = renderer.fingerprint(rule, item.environment);
    record.version = item.version;
    noteSuccess(record, clock.now());
    if (outcome.changed) tally.changed(name);
    else tally.unchanged(name);
  }

  /** Runs the commands of all rules whose files have changed, each command once however many rules name it. */
  async #runCommands(signal: AbortSignal, tally: Tally): Promise<void> {
    const { clock, state, logger } = this.#parts;
    const pending = this.#rules.flatMap((rule) => {
      const record = state.document.rules[rule.name];
      if (rule.run === undefined || !rule.enabled || record?.run_pending !== true || record.state !== "ok")
        return [];
      return [{ rule, run: rule.run, record }];
    });
    for (const group of Map.groupBy(pending, ({ run }) => JSON.stringify(run.command)).values()) {
      const [first] = group;
      if (first === undefined || signal.aborted) continue;
      const timeoutMs = Math.max(...group.map(({ run }) => run.timeout));
      const result = await runCommand({ command: first.run.command, timeoutMs }, clock, signal);
      const failure = runFailure(result);
      const rules = group.map(({ rule }) => rule.name);
      logger.info({ rules, exit_code: result.exit_code, duration_ms: result.duration_ms }, "command run");
      for (const { rule, record } of group) {
        record.last_run = result;
        if (failure === undefined) record.run_pending = false;
        else this.#fail(rule.name, record, new AgentError("run_failed", failure), tally);
      }
    }
  }

  #failByName(name: string, error: unknown, tally: Tally): void {
    this.#fail(name, this.#recordByName(name), error, tally);
  }

  #fail(name: string, record: RuleRecord, error: unknown, tally: Tally): void {
    noteFailure(record, error, this.#parts.clock.now());
    tally.failed(name, record.error ?? "");
    this.#parts.logger.warn(
      { rule: name, error: record.error, consecutive_failures: record.consecutive_failures },
      "rule failed",
    );
  }

  #recordByName(name: string): RuleRecord {
    const record = this.#parts.state.document.rules[name];
    if (record === undefined) throw new Error(`no record of the rule ${name}`);
    return record;
  }

  /** Once per process: what a crash left beside our files goes. */
  /** Puts back what writes in place that did not finish have left, also in files that no rule writes any more. */
  async #finishInPlace(): Promise<void> {
    const { journal, logger } = this.#parts;
    for (const file of await journal.unfinished()) {
      try {
        await finishInPlace(file, journal);
        logger.warn({ file }, "a write that did not finish was taken back");
      } catch (error) {
        const hint = `Its old content is in ${journal.copyOf(file)}.`;
        logger.error({ file, err: error, hint }, "a file that was written in part cannot be put back yet");
      }
    }
  }

  async #sweep(): Promise<void> {
    if (this.#swept) return;
    this.#swept = true;
    const { state, home } = this.#parts;
    const configured = this.#rules.map((rule) => expandHome(rule.target.path, home));
    await removeLeftovers([...new Set([...configured, ...Object.keys(state.document.files)])]);
  }
}

/** What a cycle did, rule by rule; a rule has one entry, and a failure outweighs the rest. */
class Tally {
  readonly #done = new Map<string, "changed" | "unchanged">();
  readonly failures = new Map<string, string>();
  /** The path that holds nothing, by rule. */
  readonly missing = new Map<string, string>();

  changed(rule: string): void {
    this.#done.set(rule, "changed");
  }

  unchanged(rule: string): void {
    this.#done.set(rule, "unchanged");
  }

  failed(rule: string, message: string): void {
    this.failures.set(rule, message);
  }

  /** @param order each rule's place; rules of a former configuration come first */
  result(
    order: ReadonlyMap<string, number>,
  ): Pick<CycleResult, "changed" | "unchanged" | "failed" | "missing"> {
    const sorted = (rules: string[]): string[] =>
      rules.toSorted((a, b) => (order.get(a) ?? -1) - (order.get(b) ?? -1));
    const named = (kind: "changed" | "unchanged"): string[] =>
      sorted(
        [...this.#done].flatMap(([rule, done]) => (done === kind && !this.failures.has(rule) ? [rule] : [])),
      );
    const failed = sorted([...this.failures.keys()]);
    const missing = sorted([...this.missing.keys()].filter((rule) => !this.failures.has(rule))).map(
      (rule) => ({
        rule,
        key: this.missing.get(rule) ?? "",
      }),
    );
    return { changed: named("changed"), unchanged: named("unchanged"), failed, missing };
  }
}

function nothingStored(path: string): AgentError {
  return new AgentError("secret_missing", `nothing is stored under ${path}`);
}

function isHurried(rule: Rule, record: RuleRecord, force: Hurry): boolean {
  if (typeof force === "boolean") return force;
  if (typeof force === "string") return force === rule.name;
  const read = [...secretPaths(rule), ...Object.keys(record.inputs)];
  // What else a template would have read is not known before it has been rendered once.
  return read.some((path) => force.has(path)) || (force.size > 0 && mayReadOthers(rule));
}
