import { join } from "node:path";
import { NameSetFile } from "../../../agent-files/name-set-file.ts";
import type { EnrolmentStatus } from "../../../status.ts";

const WIZARD = "wizard";

/** Whether the user has been through the first-run wizard, in `<state>/setup.json`; over restarts. */
export class SetupState {
  readonly #file: NameSetFile;

  /** @param state the state folder */
  constructor(state: string) {
    this.#file = new NameSetFile(join(state, "setup.json"), "left");
  }

  async isLeft(): Promise<boolean> {
    return (await this.#file.read()).has(WIZARD);
  }

  async leave(): Promise<void> {
    await this.#file.set(WIZARD, true);
  }
}

/** Those that need the user. What runs by itself has no place in the wizard and never raises it. */
export function needingUser(enrolments: readonly EnrolmentStatus[]): EnrolmentStatus[] {
  return enrolments.filter(({ interactive }) => interactive);
}

/** Neither done nor skipped. */
export function isOutstanding({ state }: EnrolmentStatus): boolean {
  return state !== "complete" && state !== "skipped";
}

/**
 * The page behind `/` for a signed-in user.
 * - `wizard`: no enrolment that needs the user has completed, and something is outstanding.
 * - `passed`: the user has a credential from one; the wizard has done its work for good.
 * - `none`: there is nothing for it to do now.
 */
export function wizardStage(enrolments: readonly EnrolmentStatus[]): "wizard" | "passed" | "none" {
  const own = needingUser(enrolments);
  if (own.some(({ state }) => state === "complete")) return "passed";
  return own.some(isOutstanding) ? "wizard" : "none";
}
