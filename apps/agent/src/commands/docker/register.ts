import { chown, lstat, mkdir, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode, writeAtomically } from "@devplat/base";
import { flagOf, printResult } from "@devplat/cli";
import { printLine, visible } from "@devplat/base/terminal";
import { volumePlaces } from "../../assemble/volume-places.ts";
import { BRAND } from "../../brand.ts";
import { AgentError } from "../../errors.ts";
import type { Host } from "../../host.ts";
import { canRun } from "../../platform/programs.ts";
import { readLingering } from "../../service/systemd/lingering.ts";
import { registrationPlaces, type RegistrationPlace } from "../../surfaces/volumes/engine/engine-places.ts";
import { readRegistration } from "../../surfaces/volumes/engine/registration.ts";
import type { RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";
import { ask } from "../common/prompt.ts";

/** Engines read the files as other users. */
const FILE_MODE = 0o644;

/** Tells the container engines of this host where the socket of the volume plugin is. Shows first what it will write. */
export const register: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const { options, flags } = invocation;
  const { config } = loaded;
  if (!config.docker.enabled) {
    throw new AgentError("not_configured", "Container volumes are off: docker.enabled is false", {
      hint: `Set docker.enabled: true in the configuration, then run '${BRAND.command} reload'.`,
    });
  }
  const isSystem = flagOf(options, "system");
  const { socket } = volumePlaces(host.places, config);
  if (isSystem) await checkLingering(socket, host.environment);
  const wanted = wantedPlaces(registrationPlaces(socket, host.places.home, host.environment), isSystem, host);
  const plan: { readonly place: RegistrationPlace; readonly state: string }[] = [];
  for (const place of wanted) plan.push({ place, state: (await readRegistration(place)).state });
  for (const { place, state } of plan) {
    if (state === "names a different socket" && !flagOf(options, "replace")) await refuseOther(place);
  }
  const missing = plan.filter(({ state }) => state !== "agrees").map(({ place }) => place);
  const shown = (done: boolean): object => ({
    socket,
    files: plan.map(({ place: { engine, path, line }, state }) => ({
      engine,
      path,
      line,
      outcome: state === "agrees" ? "agrees" : done ? "written" : "would be written",
    })),
  });
  if (missing.length === 0 || flags.dryRun) {
    printResult(options, shown(false), () => {
      for (const { place, state } of plan) printPlace(place, state === "agrees" ? "agrees" : "would write");
    });
    return 0;
  }
  if (!flagOf(options, "json")) {
    for (const place of missing) printPlace(place, "will write");
    if (isSystem) {
      printLine(
        `While the daemon is down, 'docker volume ls' waits for this socket, and containers with its volumes do not start.`,
      );
    }
  }
  if (!flagOf(options, "yes")) await confirm();
  for (const place of missing) await write(place);
  const isReplaced = plan.some(({ state }) => state === "names a different socket");
  printResult(options, shown(true), () => {
    printLine("registered");
    if (isReplaced) printLine("Restart Docker: it uses the former socket until then.");
  });
  return 0;
};

/** Without lingering, the runtime folder with the socket goes with the user's last session. @throws AgentError */
async function checkLingering(socket: string, environment: NodeJS.ProcessEnv): Promise<void> {
  if (!/^\/run\/user\/\d+\//.test(socket)) return;
  const { username, lingers } = await readLingering(environment);
  if (lingers) return;
  throw new AgentError("registration_refused", `the socket ${socket} is there only while you are logged in`, {
    hint: `Run 'loginctl enable-linger ${username}' first, or set docker.socket to another folder.`,
  });
}

/** Docker's file, and Podman's if there is a Podman. */
function wantedPlaces(
  places: readonly RegistrationPlace[],
  isSystem: boolean,
  { environment }: Pick<Host, "environment">,
): readonly RegistrationPlace[] {
  const hasPodman = canRun("podman", environment);
  return places.filter(
    (place) => place.isSystem === isSystem && (hasPodman || place.engine.startsWith("docker")),
  );
}

/** One file serves one user. @throws AgentError which names the socket that has it */
async function refuseOther({ path }: RegistrationPlace): Promise<never> {
  const text = (await readFile(path, "utf8").catch(() => "")).trim();
  const [socket = ""] = /\/[^"\s]+/.exec(text) ?? [];
  const owner = await stat(socket).catch(() => undefined);
  const user = owner === undefined ? "" : ` of user ${owner.uid}`;
  throw new AgentError(
    "registration_refused",
    `${path} names the socket ${visible(socket) || "(none)"}${user}`,
    {
      hint: "One file serves one user. With --replace it serves you instead.",
    },
  );
}

async function write({ path, content, line }: RegistrationPlace): Promise<void> {
  try {
    const folder = dirname(path);
    await mkdir(folder, { recursive: true, mode: 0o755 });
    await writeAtomically(path, content, { mode: FILE_MODE });
    const { uid, gid } = await lstat(folder);
    if (process.geteuid?.() === 0) await chown(path, uid, gid);
  } catch (error) {
    const code = systemCode(error) ?? "unknown error";
    const command = `printf '%s\\n' '${content.trimEnd().split("\n").join("' '")}' | sudo tee ${path}`;
    throw new AgentError("registration_refused", `cannot write ${path}: ${code}`, {
      hint: ["EACCES", "EPERM", "EROFS"].includes(code)
        ? `As root, run: sudo mkdir -p ${dirname(path)}; ${command}`
        : `Write the line ${line} yourself.`,
      cause: error,
    });
  }
}

function printPlace({ engine, path, content }: RegistrationPlace, verb: string): void {
  printLine(`${verb} ${path} (${engine}):`);
  for (const line of content.trimEnd().split("\n")) printLine(`    ${line}`);
}

/** @throws AgentError `confirmation_needed` */
async function confirm(): Promise<void> {
  if (!process.stdin.isTTY) {
    throw new AgentError("confirmation_needed", "nothing was written without being asked", {
      hint: "Add --yes to write the files above.",
    });
  }
  const answer = await ask("Write this? [y/N] ", { hidden: false });
  if (!/^y(?:es)?$/i.test(answer.trim())) throw new AgentError("confirmation_needed", "nothing was written");
}
