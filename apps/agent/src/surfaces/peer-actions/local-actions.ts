import type { Logger } from "@devplat/base";
import type { Desktop } from "../../desktop/desktop.ts";
import type { DesktopOutcome } from "../../desktop/program.ts";
import type { ActionKind } from "../../config/sections/action-kinds.ts";
import { actionFields, type PeerAction } from "./action.ts";

/** `busy`: an action of this kind runs already. */
export type ActionOutcome = DesktopOutcome | "busy";

/** Does what peers ask, on this host's desktop: one action of each kind at a time, however many sockets ask. */
export class LocalActions {
  readonly #desktop: Desktop;
  readonly #logger: Logger;
  readonly #running = new Set<ActionKind>();

  constructor(desktop: Desktop, logger: Logger) {
    this.#desktop = desktop;
    this.#logger = logger;
  }

  /** @param by the surface of the request, for the log */
  async perform(action: PeerAction, by: string): Promise<ActionOutcome> {
    if (this.#running.has(action.kind)) return "busy";
    this.#running.add(action.kind);
    try {
      const outcome = await performOn(this.#desktop, action);
      const fields = { ...actionFields(action), by };
      if (outcome === "done") this.#logger.info(fields, "peer action done");
      else this.#logger.warn({ ...fields, outcome }, "peer action failed");
      return outcome;
    } finally {
      this.#running.delete(action.kind);
    }
  }
}

/** Does an action on a desktop. */
export async function performOn(desktop: Desktop, action: PeerAction): Promise<DesktopOutcome> {
  switch (action.kind) {
    case "browse":
      return await desktop.open(action.url);
    case "notify":
      return await desktop.raise(action.notification);
    default: {
      const outcome = await desktop.copy(action.text);
      if (outcome === "copied") return "done";
      // Its text was checked when it was made.
      return outcome === "unusable_text" ? "failed" : outcome;
    }
  }
}
