import { join } from "node:path";
import { NameSetFile } from "../agent-files/name-set-file.ts";

/** What the user has said of enrolments, by their keys; in the state folder, over restarts. */
export class EnrolmentMarks {
  /** They are done without. */
  readonly skipped: NameSetFile;
  /** They are to be done anew, although a credential is there. */
  readonly again: NameSetFile;

  /** @param state the state folder */
  constructor(state: string) {
    this.skipped = new NameSetFile(join(state, "enrolments.json"), "skipped");
    this.again = new NameSetFile(join(state, "enrolments-again.json"), "again");
  }
}
