import { join } from "node:path";
import { NameSetFile } from "../config/name-set-file.ts";

/** The keys of the enrolments that the user has skipped, in `<state>/enrolments.json`; over restarts. */
export class Skips extends NameSetFile {
  /** @param state the state folder */
  constructor(state: string) {
    super(join(state, "enrolments.json"), "skipped");
  }
}
