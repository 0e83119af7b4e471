import { join } from "node:path";
import { NameSetFile } from "../agent-files/name-set-file.ts";

/**
 * The rules that the user has paused by hand, in `<state>/paused.json`, apart from those that the configuration pauses.
 * Read in each cycle.
 */
export class PausedRules extends NameSetFile {
  /** @param state the state folder */
  constructor(state: string) {
    super(join(state, "paused.json"), "rules");
  }
}
