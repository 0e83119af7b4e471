import type { Preview } from "./engine.ts";
import { diffOf } from "./edit/large-files.ts";
import type { PausedRules } from "./paused-rules.ts";
import type { Rule } from "../config/sections/rule.ts";

/** `configured`: the configuration pauses the rule, and only it can let the rule go on. */
export type PauseOutcome = "done" | "unknown_rule" | "configured";

/** Change of a rule's file by the next cycle, with masked values, empty for none; or the reason why it would fail. */
export type NextChange = { readonly diff: string } | { readonly problem: string };

/** Actions of the surfaces on one rule. */
export interface RuleControl {
  setPaused(name: string, paused: boolean): Promise<PauseOutcome>;
  /** @returns undefined if there is no such rule */
  nextChange(name: string, signal: AbortSignal): Promise<NextChange | undefined>;
}

export interface RuleSwitchParts {
  readonly rules: () => readonly Rule[];
  readonly paused: Pick<PausedRules, "set">;
  /** A look that leaves no trace. */
  readonly preview: (signal: AbortSignal) => Promise<Preview>;
  /** Called after a change, for the cycle that takes it up. */
  readonly onChange: () => void;
}

/** The control of the configured rules. */
export class RuleSwitch implements RuleControl {
  readonly #parts: RuleSwitchParts;

  constructor(parts: RuleSwitchParts) {
    this.#parts = parts;
  }

  async setPaused(name: string, paused: boolean): Promise<PauseOutcome> {
    const rule = this.#rule(name);
    if (rule === undefined) return "unknown_rule";
    if (!paused && rule.paused) return "configured";
    if (await this.#parts.paused.set(name, paused)) this.#parts.onChange();
    return "done";
  }

  async nextChange(name: string, signal: AbortSignal): Promise<NextChange | undefined> {
    if (this.#rule(name) === undefined) return undefined;
    const { files, failures, missing } = await this.#parts.preview(signal);
    const problem = failures.get(name) ?? missing.get(name);
    if (problem !== undefined) return { problem };
    const concerned = files.filter((file) => file.rules.includes(name));
    const diffs: string[] = [];
    for (const file of concerned) diffs.push(await diffOf(file, false, signal));
    return { diff: diffs.join("\n") };
  }

  #rule(name: string): Rule | undefined {
    return this.#parts.rules().find((rule) => rule.name === name);
  }
}
