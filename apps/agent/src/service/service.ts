import { AgentError } from "../errors.ts";
import type { SocketName } from "../surfaces/listening/activation.ts";

/** Programs that run services for a user. */
export type ManagerName = "systemd" | "launchd" | "Task Scheduler";

/**
 * - `written`, `replaced`, `removed`: done now.
 * - `unchanged`: it was right already.
 * - `kept`: the user has changed it, so it stays.
 * - `packaged`: a package has installed it.
 */
export type FileOutcome = "written" | "replaced" | "removed" | "unchanged" | "kept" | "packaged";

/** A file of the service, or a definition that the manager keeps itself. */
export interface FileReport {
  readonly path: string;
  readonly outcome: FileOutcome;
  /** Path of the copy of the user's file that was replaced. */
  readonly backup?: string;
}

/** Result of an installation or removal. With a dry run: what would be done. */
export interface ChangeReport {
  readonly files: readonly FileReport[];
  /** Actions of the service manager, such as `started agent.service`. */
  readonly actions: readonly string[];
  /** Facts that the user should know, and commands to run next. */
  readonly notes: readonly string[];
}

/** Parts of an installation that do not depend on the manager. */
export interface InstallPlan {
  /** The command line that starts this program, before the arguments. */
  readonly command: readonly string[];
  /** Variables that the program needs. */
  readonly variables: Readonly<Record<string, string>>;
  /** Sockets that the manager should open, where it can, with the paths where the daemon would open them. */
  readonly sockets: ReadonlyMap<SocketName, string>;
  /** Replace files that the user has changed, after a copy of each. */
  readonly force: boolean;
  readonly dryRun: boolean;
}

/** A socket that the manager can open for the daemon. */
export interface SocketState {
  readonly name: SocketName;
  readonly unit: string;
  readonly path: string | null;
  readonly enabled: boolean;
  readonly active: boolean;
}

/** The service as its manager sees it. */
export interface ServiceState {
  readonly installed: boolean;
  /** It starts by itself when the user logs in. */
  readonly enabled: boolean;
  /** `active`, or another word of the manager: `inactive`, `failed`, `activating`. */
  readonly active: string;
  /** PID of the daemon. */
  readonly pid: number | null;
  /** Start of the daemon (ISO 8601). */
  readonly since: string | null;
  /** Restarts by the manager since the last start by hand. */
  readonly restarts: number | null;
  /** Why the daemon ended last, as far as the manager knows it. */
  readonly last_exit: string | null;
  readonly files: readonly FileReport[];
  readonly sockets: readonly SocketState[];
  readonly problems: readonly string[];
}

/** The daemon as a service of one manager. */
export interface Service {
  readonly manager: ManagerName;
  /** @throws AgentError `service_refused` if this manager cannot run services for this user now */
  check(): Promise<void>;
  state(): Promise<ServiceState>;
  /** Writes what is missing, and starts the service. It can be repeated, also after a crash. */
  install(plan: InstallPlan): Promise<ChangeReport>;
  /** Stops the service, and removes only what was written by {@link install}. */
  remove(options: { readonly dryRun: boolean }): Promise<ChangeReport>;
}

export function serviceRefused(reason: string, hint: string): AgentError {
  return new AgentError("service_refused", reason, { hint });
}

export function serviceFailed(reason: string, hint: string): AgentError {
  return new AgentError("service_failed", reason, { hint });
}
