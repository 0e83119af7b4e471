import { join } from "node:path";
import { NameSetFile } from "../agent-files/name-set-file.ts";

/** Choices of the user about enrolments, by their keys. They are in the state folder and outlive the process. */
export class EnrolmentState {
  /** Enrolments that the user does without. */
  readonly skipped: NameSetFile;
  /** Enrolments to be done again although a credential is stored. */
  readonly again: NameSetFile;

  /** @param folder the state folder */
  constructor(folder: string) {
    this.skipped = new NameSetFile(join(folder, "enrolments.json"), "skipped");
    this.again = new NameSetFile(join(folder, "enrolments-again.json"), "again");
  }
}
