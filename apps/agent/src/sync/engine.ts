import { removeLeftovers } from "@devplat/base";
import { AgentError, publicMessage } from "../errors.ts";
import type { CycleResult } from "../status.ts";
import { previewPlan } from "./apply.ts";
import { isStoreWide } from "../secrets/store-health.ts";
import { CycleSecrets } from "./content/cycle-secrets.ts";
import { Cycle, nothingStored, type CycleParts } from "./cycle.ts";
import { exposedFiles, type ExposedFile } from "./target/exposed-files.ts";
import { planFiles } from "./file-plan.ts";
import type { ChangedFile } from "./edit/preview-text.ts";
import {
  expandHome,
  isFileRule,
  isMountedRule,
  type MountedRule,
  type Rule,
} from "../config/sections/rule.ts";
import { formatOf } from "./content/target-format.ts";
import type { MountedFiles } from "./mounted/mounted-files.ts";
import type { MountPlace } from "./mounted/mount-place.ts";
import type { EditMap } from "@devplat/document-edit";
import { RETRY_ALL, type RetryScope } from "./retry-scope.ts";
import { iso } from "./rule-state.ts";
import { valueText } from "./content/value-text.ts";
import { finishInPlace } from "./target/in-place.ts";
import { fileSignature } from "../agent-files/file-signature.ts";

export interface CycleOptions {
  /** Failed rules to try although they wait. */
  readonly retry: RetryScope;
  /** Called whenever a rule's state has changed. */
  readonly onProgress?: () => void;
}

/** Settings that a running engine can change. */
export interface EngineSettings {
  readonly rules: readonly Rule[];
  /** `sync.allowed_targets` */
  readonly allowed: readonly string[];
  /** See TargetPolicy. */
  readonly ownFiles: readonly string[];
  readonly mount: MountPlace;
}

/** One file as `--dry-run` shows it. It holds texts with values: the caller masks them. */
export interface PreviewedFile extends ChangedFile {
  readonly rules: readonly string[];
}

export interface Preview {
  readonly files: readonly PreviewedFile[];
  readonly failures: ReadonlyMap<string, string>;
  readonly missing: ReadonlyMap<string, string>;
}

/** Brings files in step with secrets, one cycle at a time. It holds no timer: the daemon's loop calls it. */
export class SyncEngine {
  readonly #parts: CycleParts;
  #rules: readonly Rule[];
  #swept = false;

  constructor(parts: CycleParts, rules: readonly Rule[], mount: MountPlace) {
    this.#parts = parts;
    this.#rules = rules;
    parts.mounted.configure(rules, mount);
  }

  get rules(): readonly Rule[] {
    return this.#rules;
  }

  /** The files of rules that are on the mount. */
  get mounted(): MountedFiles {
    return this.#parts.mounted;
  }

  /**
   * Takes up a changed configuration. The caller must not call it while a cycle runs.
   */
  configure({ rules, allowed, ownFiles, mount }: EngineSettings): void {
    this.#rules = rules;
    this.#parts.targets.configure(allowed, ownFiles);
    this.#parts.mounted.configure(rules, mount);
  }

  /** The files of all rules, each as configured and with its links followed, and the base files of those on the mount. */
  targetFiles(): string[] {
    const { state, home, mounted } = this.#parts;
    const files = this.#rules.filter(isFileRule).flatMap((rule) => {
      const known = state.document.rules[rule.name]?.target.file ?? "";
      return rule.enabled && !rule.paused ? [expandHome(rule.target.path, home), known] : [];
    });
    return [...new Set([...files, ...mounted.baseFiles()].filter((file) => file !== ""))];
  }

  /** See {@link exposedFiles}. */
  exposedFiles(): Promise<readonly ExposedFile[]> {
    return exposedFiles(this.#rules, this.#parts.home);
  }

  /** Whether another program has changed one of {@link targetFiles} since the last cycle. */
  async isTouched(path: string): Promise<boolean> {
    const { state, home, mounted } = this.#parts;
    if (await mounted.isBaseTouched(path)) return true;
    const records = this.#rules.flatMap((rule) => state.document.rules[rule.name] ?? []);
    const own = records.find(({ target }) => target.file === path || expandHome(target.path, home) === path);
    const known = own === undefined ? undefined : state.document.files[own.target.file]?.signature;
    return known !== undefined && known !== (await fileSignature(path));
  }

  /**
   * One cycle: versions first, values only of rules that have something to do, each rule for itself.
   * @throws SecretStoreError when the store as a whole cannot be used; files and states of rules stay as they are
   */
  async cycle(signal: AbortSignal, options: CycleOptions): Promise<CycleResult> {
    const { state, clock } = this.#parts;
    const { document } = state;
    const started = iso(clock.now());
    await this.#sweep();
    await this.#finishInPlace();
    const cycle = new Cycle(this.#parts, this.#rules, signal);
    try {
      const work = await cycle.prepare(options.retry);
      options.onProgress?.();
      await cycle.write(work);
      await state.save();
      await cycle.runCommands();
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
    const order = this.#rules.map(({ name }) => name);
    return { started_at: started, finished_at: iso(clock.now()), ...cycle.report.result(order) };
  }

  /**
   * The variables that rules of the format dotenv would write, by name. Writes nothing.
   * @throws AgentError `secret_missing`, and the errors of rendering
   */
  async variables(rules: readonly Rule[], signal: AbortSignal): Promise<Map<string, string>> {
    const secrets = new CycleSecrets(this.#parts.store, signal);
    const variables = new Map<string, string>();
    for (const rule of rules) {
      const rendered = await this.#parts.renderer.render(rule, secrets);
      if (rendered.kind === "missing") throw new AgentError("secret_missing", nothingStored(rendered.path));
      for (const [name, value] of rendered.content) variables.set(name, valueText(value));
    }
    return variables;
  }

  /** The files that a cycle would write. Writes nothing itself. @throws SecretStoreError */
  async preview(signal: AbortSignal): Promise<Preview> {
    const cycle = new Cycle(this.#parts, this.#rules, signal);
    const work = await cycle.prepare(RETRY_ALL);
    const { plans, failures } = await planFiles(work, this.#rules, this.#parts);
    const failed = new Map(cycle.report.failures);
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
    for (const { rule, content } of work) {
      if (!isMountedRule(rule) || content === undefined) continue;
      try {
        files.push(await this.#previewMounted(rule, content, signal));
      } catch (error) {
        if (signal.aborted) throw error;
        failed.set(rule.name, publicMessage(error));
      }
    }
    const missing = [...cycle.report.missing].map(([rule, key]) => [rule, nothingStored(key)] as const);
    return { files, failures: failed, missing: new Map(missing) };
  }

  /** A file of the mount, compared with its base file, if it has one. */
  async #previewMounted(rule: MountedRule, content: EditMap, signal: AbortSignal): Promise<PreviewedFile> {
    const { mounted } = this.#parts;
    const base = await mounted.base(rule);
    return {
      path: `${rule.target.mount} (on the mount)`,
      rules: [rule.name],
      format: formatOf(rule.target),
      existing: base?.bytes,
      next: await mounted.bytes(rule, content, base, signal),
    };
  }

  /** Takes back writes in place that did not finish, also in files that no rule writes any more. */
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

  /** Removes, once per process, the temporary files that a crash has left next to the targets. */
  async #sweep(): Promise<void> {
    if (this.#swept) return;
    this.#swept = true;
    const { state, home } = this.#parts;
    const configured = this.#rules.filter(isFileRule).map((rule) => expandHome(rule.target.path, home));
    await removeLeftovers([...new Set([...configured, ...Object.keys(state.document.files)])]);
  }
}
