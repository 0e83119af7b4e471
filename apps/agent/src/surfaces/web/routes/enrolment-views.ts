import type { EnrolmentRunner } from "../../../enrol/runner.ts";
import type { EnrolmentView } from "../pages/enrolments/card.ts";

/** Actions of the pages on enrolments. */
export type EnrolmentControl = Pick<
  EnrolmentRunner,
  "list" | "prompt" | "start" | "retry" | "answer" | "cancel" | "skip" | "look" | "onChange"
>;

/** The enrolments, each with the input that it needs. */
export function enrolmentViews(enrolments: Pick<EnrolmentControl, "list" | "prompt">): EnrolmentView[] {
  return enrolments.list().map((enrolment) => ({ enrolment, prompt: enrolments.prompt(enrolment.key) }));
}
