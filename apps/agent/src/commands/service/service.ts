import { userInfo } from "node:os";
import { pollUntil } from "@devplat/base";
import { flagOf, printResult } from "@devplat/cli";
import { BRAND } from "../../brand.ts";
import { loadConfig, type LoadedConfig } from "../../config/load.ts";
import type { Host } from "../../host.ts";
import { installedProgram, runningProgram } from "../../service/program-path.ts";
import { serviceFailed, serviceRefused, type Service, type ServiceState } from "../../service/service.ts";
import { publicMessage } from "../../errors.ts";
import { askDaemon } from "../../surfaces/socket/daemon-status.ts";
import { apiSocketPath } from "../../surfaces/socket/places.ts";
import type { Invocation, RunCommand } from "../common/command.ts";
import { hostOf, openContext } from "../common/context.ts";
import { runningDaemon } from "../common/daemon-process.ts";
import { isConfigFault } from "../status/status-without-config.ts";
import { serviceSockets } from "./service-sockets.ts";
import { printChanges, printState } from "./service-text.ts";

/** For a daemon that is starting, and for the first answer of one that is ready, which comes immediately. In milliseconds. */
const DAEMON_LIMIT_MS = 10_000;
const POLL_MS = 200;

/** Makes the daemon a service of the user, and starts it. */
export const install: RunCommand = async (invocation) => {
  refuseConfigOption(invocation);
  const { host, loaded } = await openContext(invocation);
  const service = await serviceOf(host);
  await service.check();
  const { command, variables } = await installedProgram(
    runningProgram(host.places.platform, host.environment),
  );
  const before = await refuseOtherDaemon(host, service);
  const { dryRun } = invocation.flags;
  const changes = await service.install({
    command,
    variables,
    sockets: serviceSockets(host, loaded.config),
    force: flagOf(invocation.options, "force"),
    dryRun,
  });
  const after = dryRun ? before : await workingState(host, loaded, service);
  const changed =
    changes.actions.length > 0 ||
    changes.files.some(({ outcome }) => ["written", "replaced", "removed"].includes(outcome));
  const report = { manager: service.manager, dry_run: dryRun, changed, ...changes, pid: after.pid };
  printResult(invocation.options, report, () => printChanges(report, "installed"));
  return 0;
};

/** Whether the service is installed and runs, and whether the daemon answers. Exit code 1 unless all of it is so. */
export const status: RunCommand = async (invocation) => {
  refuseConfigOption(invocation);
  const host = hostOf(invocation);
  const service = await serviceOf(host);
  await service.check();
  const state = await service.state();
  const problems = [...state.problems];
  const loaded = await loadConfig(host.places, undefined).catch((fault: unknown) => {
    if (!isConfigFault(fault)) throw fault;
    problems.push(publicMessage(fault));
    return undefined;
  });
  const isActive = state.active === "active";
  // A request to a socket of the manager would start the daemon.
  const answers = isActive ? await isAnswering(host, loaded) : null;
  if (isActive && answers === false)
    problems.push("the service is active, but the daemon does not answer: it hangs, or another program runs");
  const daemon = await runningDaemon(host, state.pid);
  const isOther = daemon !== undefined && daemon.pid !== state.pid;
  if (isOther) problems.push(`${daemonText(daemon.pid)} runs, which was not started by the service`);
  const report = {
    manager: service.manager,
    ...state,
    answers,
    other_daemon: isOther ? { pid: daemon.pid ?? null } : null,
    problems,
  };
  printResult(invocation.options, report, () => printState(report));
  return state.installed && isActive && answers !== false && problems.length === 0 ? 0 : 1;
};

/** Stops the service, and removes what `install` has written. Configuration, secrets and state stay. */
export const remove: RunCommand = async (invocation) => {
  const host = hostOf(invocation);
  const service = await serviceOf(host);
  await service.check();
  const { dryRun } = invocation.flags;
  const changes = await service.remove({ dryRun });
  const changed = changes.actions.length > 0 || changes.files.some(({ outcome }) => outcome === "removed");
  const report = { manager: service.manager, dry_run: dryRun, changed, ...changes };
  printResult(invocation.options, report, () => printChanges(report, "removed"));
  return 0;
};

/** The service in the manager of this system. @throws AgentError `service_refused` */
async function serviceOf(host: Host): Promise<Service> {
  const { places, environment } = host;
  const { home, state, platform } = places;
  switch (platform.system) {
    case "linux": {
      const { SystemdService } = await import("../../service/systemd/systemd-service.ts");
      return new SystemdService({ places, environment });
    }
    case "darwin": {
      const { LaunchdService } = await import("../../service/launchd/launchd-service.ts");
      return new LaunchdService({ home, environment, userId: process.geteuid?.() ?? 0 });
    }
    case "win32": {
      const { ScheduledTask } = await import("../../service/windows/scheduled-task.ts");
      const { username } = userInfo();
      const daemonPid = async (): Promise<number | undefined> => (await runningDaemon(host, null))?.pid;
      const kill = (pid: number): void => void process.kill(pid);
      return new ScheduledTask({ home, state, environment, username, daemonPid, kill });
    }
    default:
      throw serviceRefused(
        `Cannot make a service: there is no code for the service manager of ${platform.system}`,
        `Have it run '${BRAND.command} run' as your user.`,
      );
  }
}

/** A service starts without options. */
function refuseConfigOption({ flags }: Invocation): void {
  if (flags.config === undefined) return;
  throw serviceRefused(
    "Cannot make a service with --config: it uses the configuration in its usual place",
    `Move the file there; '${BRAND.command} config print' shows which file counts.`,
  );
}

/**
 * Only one daemon of a user can run. One that the manager is just starting, such as for an install that was killed, is waited for.
 *
 * @returns the state of the service @throws AgentError `service_refused`
 */
async function refuseOtherDaemon(host: Host, service: Service): Promise<ServiceState> {
  const { state, daemon, isOther } = await pollUntil(
    async () => {
      const seen = await service.state();
      const running = await runningDaemon(host, seen.pid);
      const isUnknown = running !== undefined && (seen.pid === null || running.pid !== seen.pid);
      // The manager may have started it since it was asked.
      const now = isUnknown ? await service.state() : seen;
      const isStarting = isUnknown && (now.active === "activating" || now.pid !== seen.pid);
      return { state: now, daemon: running, isOther: isUnknown, isStarting };
    },
    (seen) => !seen.isStarting,
    { limitMs: DAEMON_LIMIT_MS, intervalMs: POLL_MS, clock: host.clock },
  );
  if (!isOther) return state;
  throw serviceRefused(
    `Cannot start the service: ${daemonText(daemon?.pid)} runs already, and was not started by the service`,
    daemon?.pid === undefined
      ? "Stop it, then run the command again."
      : `Stop it with 'kill ${daemon.pid}', or Ctrl-C in its terminal, then run the command again.`,
  );
}

function daemonText(pid: number | undefined): string {
  return pid === undefined ? "a daemon of yours" : `a daemon with PID ${pid}`;
}

/** The state of a service that works. @throws AgentError `service_failed` */
async function workingState(host: Host, loaded: LoadedConfig, service: Service): Promise<ServiceState> {
  const { state, answers, daemon, works } = await pollUntil(
    async () => {
      const now = await service.state();
      const isAnswered = now.active === "active" && (await isAnswering(host, loaded)) !== false;
      const running = isAnswered ? await runningDaemon(host, now.pid) : undefined;
      const isOwn = running !== undefined && running.pid === now.pid;
      return { state: now, answers: isAnswered, daemon: running, works: isOwn };
    },
    (seen) => seen.works,
    { limitMs: DAEMON_LIMIT_MS, intervalMs: POLL_MS, clock: host.clock },
  );
  if (!works) throw notWorking(state, answers, daemon?.pid);
  return state;
}

function notWorking(
  { active, last_exit: exit, pid }: ServiceState,
  answers: boolean,
  other: number | undefined,
) {
  const reason =
    active !== "active"
      ? `it is ${active}${exit === null ? "" : `, and ended with: ${exit}`}`
      : answers
        ? `its process ${pid ?? ""} is not the daemon${other === undefined ? "" : `, which has PID ${other}`}`
        : "it is active, but the daemon does not answer";
  return serviceFailed(
    `The service does not work: ${reason}`,
    `Its log tells why; '${BRAND.command} service status' shows its state.`,
  );
}

/** Whether the daemon answers; null where the configuration gives no way to ask it. */
async function isAnswering({ places }: Host, loaded: LoadedConfig | undefined): Promise<boolean | null> {
  const { api, web } = loaded?.config ?? {};
  if (api?.enabled === false && web?.enabled === false) return null;
  const socket = api?.enabled === false ? undefined : apiSocketPath(places, api);
  return (await askDaemon(places, socket)) !== undefined;
}
