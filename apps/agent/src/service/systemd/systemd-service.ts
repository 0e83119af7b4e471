import { readlink, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { exists, ifExists, removeLeftovers, systemCode } from "@devplat/base";
import { findPlaces, type Places } from "../../agent-files/places.ts";
import { BRAND } from "../../brand.ts";
import { Actions } from "../actions.ts";
import { readGenerated, removeGenerated, writeGenerated } from "../generated-file.ts";
import { readLingering } from "./lingering.ts";
import {
  serviceFailed,
  serviceRefused,
  type ChangeReport,
  type FileReport,
  type InstallPlan,
  type Service,
  type ServiceState,
  type SocketState,
} from "../service.ts";
import type { SocketName } from "../../surfaces/listening/activation.ts";
import { exitText } from "./exit-text.ts";
import { packagedFolder, unitFolder } from "./unit-folders.ts";
import { removeUnits } from "./remove-units.ts";
import { socketOwner } from "./socket-owner.ts";
import {
  MOUNT_UNIT,
  PACKAGED_PROGRAM,
  SERVICE_UNIT,
  SOCKET_UNITS,
  stopCalls,
  UNIT_NAMES,
  unitTexts,
} from "./unit-files.ts";
import { isActive, UserManager, type Unit } from "./user-manager.ts";

/** It is there while systemd is the system's service manager (sd_booted(3)). */
const BOOTED = "/run/systemd/system";
/** `ln -s /dev/null` in place of a unit. */
const MASKED = "masked";

export interface SystemdParts {
  readonly places: Places;
  readonly environment: NodeJS.ProcessEnv;
}

/** The daemon as units of the user's systemd. */
export class SystemdService implements Service {
  readonly manager = "systemd";
  readonly #places: Places;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #user: UserManager;
  readonly #folder: string;

  constructor({ places, environment }: SystemdParts) {
    this.#places = places;
    this.#environment = environment;
    this.#user = new UserManager(environment);
    this.#folder = unitFolder(places);
  }

  async check(): Promise<void> {
    if (!(await exists(BOOTED))) {
      throw serviceRefused(
        "Cannot make a service: this host does not run systemd",
        `Have its service manager run '${BRAND.command} run' as your user.`,
      );
    }
    const variables = await this.#user.environment();
    if (variables === undefined) throw await this.#unreachable();
    const others = differingPlaces(this.#places, findPlaces(variables));
    if (others !== undefined) {
      throw serviceRefused(
        `Cannot make a service: it would use ${others.theirs}, and this shell uses ${others.own}`,
        `Write the variables XDG_*_HOME of this shell into ~/.config/environment.d/${BRAND.command}.conf, run 'systemctl --user daemon-reload', and try again.`,
      );
    }
  }

  async state(): Promise<ServiceState> {
    const units = await this.#user.units(UNIT_NAMES);
    const service = unitOf(units, SERVICE_UNIT);
    const installed = service.LoadState === "loaded" || service.LoadState === MASKED;
    const pid = Number(service.MainPID) || null;
    const files: FileReport[] = [];
    for (const name of installed ? UNIT_NAMES : []) {
      const { FragmentPath: path } = unitOf(units, name);
      if (path === "") continue;
      const isOwnFolder = path.startsWith(`${this.#folder}/`);
      const isEdited = isOwnFolder && (await readGenerated(path)).state === "edited";
      files.push({ path, outcome: isEdited ? "kept" : isOwnFolder ? "unchanged" : "packaged" });
      for (const dropIn of unitOf(units, name)
        .DropInPaths.split(" ")
        .filter((each) => each !== ""))
        files.push({ path: dropIn, outcome: "kept" });
    }
    const problems: string[] = [];
    if (service.LoadState === MASKED) problems.push(`${SERVICE_UNIT} is masked`);
    else if (installed && service.UnitFileState !== "enabled")
      problems.push(`${SERVICE_UNIT} is not enabled: it does not start when you log in`);
    if (service.NeedDaemonReload === "yes")
      problems.push("unit files have changed: run 'systemctl --user daemon-reload'");
    if (pid !== null && (await isReplaced(pid)))
      problems.push(`the program was replaced since the start: run '${BRAND.command} service install'`);
    return {
      installed,
      enabled: service.UnitFileState === "enabled",
      active: service.ActiveState,
      pid,
      since: startTime(service),
      restarts: installed ? Number(service.NRestarts) : null,
      last_exit: exitText(service),
      files,
      sockets: installed ? socketStates(units) : [],
      problems,
    };
  }

  async install(plan: InstallPlan): Promise<ChangeReport> {
    const before = await this.#user.units(UNIT_NAMES);
    refuseMasked(before);
    await this.#refuseForeignSockets(plan.sockets, before);
    const files = await this.#writeFiles(plan);
    const wasWritten = files.some(({ outcome }) => ["written", "replaced", "removed"].includes(outcome));
    // A run that was killed may have written them, and not reloaded.
    const isStale = [...before.values()].some(
      ({ NeedDaemonReload: need, LoadState: state }) => need === "yes" || state !== "loaded",
    );
    if (!plan.dryRun && (wasWritten || isStale)) await this.#user.must("daemon-reload");
    const actions = await this.#apply(plan, await this.#user.units(UNIT_NAMES), files);
    const { username, lingers } = await readLingering(this.#environment);
    const notes = [
      ...(await programNotes(await this.#user.units([SERVICE_UNIT]), plan, files)),
      ...(lingers
        ? []
        : [`It runs while you are logged in. 'loginctl enable-linger ${username}' keeps it running.`]),
      "'journalctl --user -u agent' shows its log.",
    ];
    return { files, actions, notes };
  }

  async remove({ dryRun }: { readonly dryRun: boolean }): Promise<ChangeReport> {
    return removeUnits(this.#user, this.#folder, dryRun);
  }

  /** Why the manager does not answer. */
  async #unreachable(): Promise<Error> {
    const { XDG_RUNTIME_DIR: runtime, SUDO_USER: caller } = this.#environment;
    const userId = process.geteuid?.() ?? 0;
    if (userId === 0) {
      const asUser = caller === undefined || caller === "root" ? "" : `, ${caller}`;
      return serviceRefused(
        "Cannot make a service: root has no service manager of its own here",
        `Run it without sudo, as the user whose files the daemon keeps${asUser}.`,
      );
    }
    if (runtime === undefined || runtime === "") {
      const folder = `/run/user/${userId}`;
      return serviceRefused(
        "Cannot make a service: this shell has no login session, so XDG_RUNTIME_DIR is not set",
        (await exists(folder))
          ? `Log in with ssh or at the console instead of su, or run 'export XDG_RUNTIME_DIR=${folder}' first.`
          : "Log in with ssh or at the console instead of su. Or have root run 'loginctl enable-linger' for you first.",
      );
    }
    return serviceRefused(
      `Cannot make a service: the service manager of user ${userId} does not answer in ${runtime}`,
      "'systemctl --user status' tells why. Log in again, or have root run 'loginctl enable-linger' for you.",
    );
  }

  async #writeFiles({ command, variables, force, dryRun }: InstallPlan): Promise<FileReport[]> {
    const packaged = await packagedFolder(await this.#user.unitPath(), this.#folder, this.#environment);
    if (!dryRun) await removeLeftovers(UNIT_NAMES.map((name) => join(this.#folder, name)));
    const files: FileReport[] = [];
    if (packaged !== undefined) {
      for (const name of UNIT_NAMES) {
        // It would hide the unit of the package.
        const own = await removeGenerated(join(this.#folder, name), dryRun);
        files.push(own ?? { path: join(packaged, name), outcome: "packaged" });
      }
      return files;
    }
    for (const [name, text] of unitTexts(command, variables))
      files.push(await writeGenerated(join(this.#folder, name), text, { force, dryRun }));
    return files;
  }

  /** Enables and starts the units that the plan asks for. */
  async #apply(
    plan: InstallPlan,
    units: ReadonlyMap<string, Unit>,
    files: readonly FileReport[],
  ): Promise<readonly string[]> {
    const { sockets, dryRun } = plan;
    const service = unitOf(units, SERVICE_UNIT);
    const wanted = [...sockets.keys()].map((name) => SOCKET_UNITS[name]);
    const unwanted = Object.values(SOCKET_UNITS).filter((name) => !wanted.includes(name));
    const disable = unwanted.filter((name) => isOn(unitOf(units, name)));
    const enable = [SERVICE_UNIT, ...wanted].filter(
      (name) => unitOf(units, name).UnitFileState !== "enabled",
    );
    const missing = wanted.filter((name) => unitOf(units, name).ActiveState !== "active");
    const wasRunning = isActive(service);
    const hasChanged = files.some(
      ({ path, outcome }) =>
        path.endsWith(`/${SERVICE_UNIT}`) && ["written", "replaced", "removed"].includes(outcome),
    );
    // A socket is not opened for a daemon that runs already.
    const needsStop =
      wasRunning &&
      (missing.some((name) => name !== SOCKET_UNITS.mount) ||
        disable.length > 0 ||
        hasChanged ||
        (await isOutdated(service)));
    const actions = new Actions({ dryRun });
    const act = async (text: string, ...calls: readonly (readonly string[])[]): Promise<void> =>
      actions.take(text, async () => this.#user.mustAll(calls));
    if (disable.length > 0) await act(`disabled ${disable.join(", ")}`, ["disable", "--now", ...disable]);
    if (enable.length > 0) await act(`enabled ${enable.join(", ")}`, ["enable", ...enable]);
    // With an active socket, a client could start the daemon before the other sockets are open.
    const stop = stopCalls([...wanted, SERVICE_UNIT, MOUNT_UNIT]);
    const start = ["start", ...wanted, SERVICE_UNIT];
    if (needsStop) await act(`restarted ${SERVICE_UNIT}`, ...stop, start);
    else if (missing.length > 0 || service.ActiveState !== "active") {
      const started = [...missing, ...(service.ActiveState === "active" ? [] : [SERVICE_UNIT])];
      await actions.take(`started ${started.join(", ")}`, async () => {
        await this.#user.run("reset-failed", SERVICE_UNIT);
        await this.#user.must(...start);
      });
    }
    return actions.texts;
  }

  /** A socket of another program would make its unit fail, or the unit would take it away. */
  async #refuseForeignSockets(
    sockets: ReadonlyMap<SocketName, string>,
    units: ReadonlyMap<string, Unit>,
  ): Promise<void> {
    const daemon = Number(unitOf(units, SERVICE_UNIT).MainPID);
    for (const [name, path] of sockets) {
      if (unitOf(units, SOCKET_UNITS[name]).ActiveState === "active") continue;
      const owner = await socketOwner(path);
      if (owner === undefined || (owner.pid !== undefined && owner.pid === daemon)) continue;
      // The manager may have opened it just now, for a command that was killed.
      const unit = SOCKET_UNITS[name];
      if (isActive(unitOf(await this.#user.units([unit]), unit))) continue;
      throw serviceRefused(
        `Cannot start the service: ${owner.text}, listens on ${path}`,
        "End that program, then run the command again.",
      );
    }
  }
}

function unitOf(units: ReadonlyMap<string, Unit>, name: string): Unit {
  const unit = units.get(name);
  if (unit === undefined) throw new RangeError(`no unit ${name}`);
  return unit;
}

function isOn(unit: Unit): boolean {
  return unit.UnitFileState === "enabled" || isActive(unit);
}

function refuseMasked(units: ReadonlyMap<string, Unit>): void {
  const masked = [...units].filter(([, { LoadState: state }]) => state === MASKED).map(([name]) => name);
  if (masked.length === 0) return;
  throw serviceRefused(
    `Cannot install the service: ${masked.join(", ")} is masked`,
    `Run 'systemctl --user unmask ${masked.join(" ")}' first.`,
  );
}

/** The first folder that differs. */
function differingPlaces(own: Places, theirs: Places): { own: string; theirs: string } | undefined {
  const keys = ["userConfig", "state", "data", "cache", "runtime", "tokenFile"] as const;
  const key = keys.find((each) => own[each] !== theirs[each]);
  return key && { own: own[key], theirs: theirs[key] };
}

function socketStates(units: ReadonlyMap<string, Unit>): SocketState[] {
  return (Object.entries(SOCKET_UNITS) as [SocketName, string][]).map(([name, unit]) => {
    const { Listen: listen, UnitFileState: state, ActiveState: active } = unitOf(units, unit);
    // `/run/user/1000/daemon/api.sock (Stream)`
    const path = listen.replace(/ \(\w+\)$/, "");
    return {
      name,
      unit,
      path: path === "" ? null : path,
      enabled: state === "enabled",
      active: active === "active",
    };
  });
}

/** The clock of these times begins with the start of the system, as that of process.hrtime. */
function startTime({ ExecMainStartTimestampMonotonic: value, MainPID: pid }: Unit): string | null {
  const started = Number(value);
  if (!(started > 0) || pid === "0") return null;
  const ageMs = Number(process.hrtime.bigint() / 1000n) / 1000 - started / 1000;
  return new Date(Date.now() - ageMs).toISOString();
}

/** Whether a running service began before its unit or its program was written. */
async function isOutdated(service: Unit): Promise<boolean> {
  const pid = Number(service.MainPID);
  const started = startTime(service);
  if (pid === 0 || started === null) return false;
  const file = await ifExists(stat(service.FragmentPath));
  return (file !== undefined && file.mtimeMs > Date.parse(started)) || (await isReplaced(pid));
}

/** Whether the file of a process's program was removed or replaced since its start. */
async function isReplaced(pid: number): Promise<boolean> {
  try {
    return (await readlink(`/proc/${pid}/exe`)).endsWith(" (deleted)");
  } catch (error) {
    if (["ENOENT", "EACCES", "ESRCH"].includes(systemCode(error) ?? "")) return false;
    throw serviceFailed(`Cannot look at the process ${pid}`, "Run the command again.");
  }
}

/** The unit of a package starts the package's program, which may be another one than this. */
async function programNotes(
  units: ReadonlyMap<string, Unit>,
  { command }: InstallPlan,
  files: readonly FileReport[],
): Promise<string[]> {
  const { FragmentPath: path } = unitOf(units, SERVICE_UNIT);
  const outcome = files.find((file) => file.path.endsWith(`/${SERVICE_UNIT}`))?.outcome;
  const [program = ""] = command;
  if (outcome !== "packaged") return [];
  const [own, packaged] = [program, PACKAGED_PROGRAM].map(async (each) => realpath(each).catch(() => each));
  if ((await own) === (await packaged)) return [];
  return [`${path} is of a package. It starts ${PACKAGED_PROGRAM}, and not ${program}.`];
}
