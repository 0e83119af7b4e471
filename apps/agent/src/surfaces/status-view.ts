import type { AgentStatus, CycleResult, DaemonView, RuleView } from "../status.ts";
import type { Surface } from "./surface.ts";

/** The daemon's state together with that of its surfaces. */
export class StatusView implements DaemonView {
  readonly #daemon: DaemonView;
  readonly #surfaces: Pick<Surface, "status">;
  readonly #remotes: Pick<DaemonView, "onChange">;

  constructor(daemon: DaemonView, surfaces: Pick<Surface, "status">, remotes: Pick<DaemonView, "onChange">) {
    this.#daemon = daemon;
    this.#surfaces = surfaces;
    this.#remotes = remotes;
  }

  status(): AgentStatus {
    return { ...this.#daemon.status(), ...this.#surfaces.status() };
  }

  rules(): readonly RuleView[] {
    return this.#daemon.rules();
  }

  syncNow(rule?: string): { readonly job: string; readonly done: Promise<CycleResult> } {
    return this.#daemon.syncNow(rule);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#daemon.onChange(listener, signal);
    this.#remotes.onChange(listener, signal);
  }
}
