import { printLine } from "@devplat/base/terminal";
import type { Options } from "./command.ts";
import { printResult } from "./print.ts";

/** What one look came to: a text that may be empty, a warning, or a fault. */
export type Outcome = string | { readonly warning: string } | { readonly fault: string };

interface Finding {
  readonly check: string;
  readonly state: "ok" | "warning" | "fault";
  readonly detail: string;
}

const MARKS = { ok: "ok     ", warning: "warning", fault: "FAULT  " } as const;

/** What a `doctor` command looks at, one check after the other. */
export class Findings {
  readonly #all: Finding[] = [];
  readonly #faultOf: (error: unknown) => string;

  /** @param faultOf the words for what a check throws, which is a fault */
  constructor(faultOf: (error: unknown) => string) {
    this.#faultOf = faultOf;
  }

  /** Makes one check. Never throws. */
  async attempt(check: string, look: () => Promise<Outcome>): Promise<void> {
    const outcome = await look().catch((error: unknown) => ({ fault: this.#faultOf(error) }));
    if (typeof outcome === "string") this.#all.push({ check, state: "ok", detail: outcome });
    else if ("warning" in outcome) this.#all.push({ check, state: "warning", detail: outcome.warning });
    else this.#all.push({ check, state: "fault", detail: outcome.fault });
  }

  /** Prints what was found, with `--json` as a document. Gives the exit code: 1 if there is a fault. */
  print(options: Options): number {
    printResult(options, { findings: this.#all }, () => {
      for (const { check, state, detail } of this.#all) {
        printLine(`${MARKS[state]}  ${check}${detail === "" ? "" : `: ${detail}`}`);
      }
    });
    return this.#all.some(({ state }) => state === "fault") ? 1 : 0;
  }
}
