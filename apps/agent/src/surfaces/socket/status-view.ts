import type { AgentStatus, CycleResult, DaemonView, RuleView } from "../../status.ts";

/** What the sockets add to the status. */
export type SocketStatus = Pick<AgentStatus, "api" | "peers">;

/** The daemon's state together with that of its sockets. */
export class SocketStatusView implements DaemonView {
  readonly #daemon: DaemonView;
  readonly #sockets: () => SocketStatus;

  constructor(daemon: DaemonView, sockets: () => SocketStatus) {
    this.#daemon = daemon;
    this.#sockets = sockets;
  }

  status(): AgentStatus {
    return { ...this.#daemon.status(), ...this.#sockets() };
  }

  rules(): readonly RuleView[] {
    return this.#daemon.rules();
  }

  syncNow(rule?: string): { readonly job: string; readonly done: Promise<CycleResult> } {
    return this.#daemon.syncNow(rule);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#daemon.onChange(listener, signal);
  }
}
