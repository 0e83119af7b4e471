import type { AgentStatus, CycleResult, DaemonView, RuleView } from "../status.ts";
import type { Surface } from "./surface.ts";

/** A file that people edit, whose content the surfaces show. */
interface ChangingFile extends Pick<DaemonView, "onChange"> {
  /** Why the file cannot be used now. */
  fileProblem(): string | undefined;
}

/** The daemon's state together with that of its surfaces. */
export class StatusView implements DaemonView {
  readonly #daemon: DaemonView;
  readonly #surfaces: Pick<Surface, "status">;
  readonly #remotes: ChangingFile;
  readonly #others: readonly Pick<DaemonView, "onChange">[];

  /** @param others whose changes change the status */
  constructor(
    daemon: DaemonView,
    surfaces: Pick<Surface, "status">,
    remotes: ChangingFile,
    others: readonly Pick<DaemonView, "onChange">[],
  ) {
    this.#daemon = daemon;
    this.#surfaces = surfaces;
    this.#remotes = remotes;
    this.#others = others;
  }

  status(): AgentStatus {
    const status = { ...this.#daemon.status(), ...this.#surfaces.status() };
    const fault = this.#remotes.fileProblem();
    if (fault === undefined) return status;
    const { config } = status;
    return { ...status, config: { ...config, problems: [...config.problems, fault] } };
  }

  rules(): readonly RuleView[] {
    return this.#daemon.rules();
  }

  syncNow(rule?: string): { readonly job: string; readonly done: Promise<CycleResult> } {
    return this.#daemon.syncNow(rule);
  }

  secretChanged(path: string): void {
    this.#daemon.secretChanged(path);
  }

  onChange(listener: () => void, signal: AbortSignal): void {
    this.#daemon.onChange(listener, signal);
    this.#remotes.onChange(listener, signal);
    for (const other of this.#others) other.onChange(listener, signal);
  }
}
