import { printLine } from "@devplat/base/terminal";
import type { Options } from "./command.ts";
import { printResult } from "./print.ts";

/** Result of one check: a text, which may be empty, a warning, or a fault. */
export type Outcome = string | { readonly warning: string } | { readonly fault: string };

interface Finding {
  readonly check: string;
  readonly state: "ok" | "warning" | "fault";
  readonly detail: string;
}

const MARKS = { ok: "ok     ", warning: "warning", fault: "FAULT  " } as const;

/** Checks of a `doctor` command, and their results. */
export class Findings {
  readonly #all: Finding[] = [];
  readonly #faultOf: (error: unknown) => string;

  /** @param faultOf gives the text of the fault for an error that a check throws */
  constructor(faultOf: (error: unknown) => string) {
    this.#faultOf = faultOf;
  }

  /** Runs one check. Never throws. */
  async attempt(check: string, run: () => Promise<Outcome>): Promise<void> {
    const outcome = await run().catch((error: unknown) => ({ fault: this.#faultOf(error) }));
    if (typeof outcome === "string") this.#all.push({ check, state: "ok", detail: outcome });
    else if ("warning" in outcome) this.#all.push({ check, state: "warning", detail: outcome.warning });
    else this.#all.push({ check, state: "fault", detail: outcome.fault });
  }

  /** Prints all results, with `--json` as JSON. @returns the exit code: 1 if there is a fault */
  print(options: Options): number {
    printResult(options, { findings: this.#all }, () => {
      for (const { check, state, detail } of this.#all) {
        printLine(`${MARKS[state]}  ${check}${detail === "" ? "" : `: ${detail}`}`);
      }
    });
    return this.#all.some(({ state }) => state === "fault") ? 1 : 0;
  }
}
