import { lastErrorLine, runTool, type ProgramResult } from "../../platform/run-tool.ts";
import { serviceFailed } from "../service.ts";

/** A unit's start may take 90 seconds (TimeoutStartSec), and its stop as long. In milliseconds. */
const CHANGE_TIMEOUT_MS = 200_000;

const PROPERTIES = [
  "Id",
  "LoadState",
  "ActiveState",
  "SubState",
  "UnitFileState",
  "FragmentPath",
  "DropInPaths",
  "NeedDaemonReload",
  "Result",
  "MainPID",
  "NRestarts",
  "ExecMainCode",
  "ExecMainStatus",
  "ExecMainStartTimestampMonotonic",
  "Listen",
] as const;
type Property = (typeof PROPERTIES)[number];

/** Properties of a unit (org.freedesktop.systemd1(5)). One that its type does not have is empty. */
export type Unit = Readonly<Record<Property, string>>;

/** The service manager of the user: `systemctl --user`. */
export class UserManager {
  readonly #environment: NodeJS.ProcessEnv;

  constructor(environment: NodeJS.ProcessEnv) {
    this.#environment = environment;
  }

  async run(...args: readonly string[]): Promise<ProgramResult> {
    return runTool("systemctl", ["--user", "--no-ask-password", ...args], {
      environment: this.#environment,
      timeoutMs: CHANGE_TIMEOUT_MS,
    });
  }

  /** @returns what it prints @throws AgentError `service_failed` */
  async must(...args: readonly string[]): Promise<string> {
    const result = await this.run(...args);
    if (result.code === 0) return result.stdout;
    throw serviceFailed(
      `'systemctl --user ${args.join(" ")}' failed: ${lastErrorLine(result)}`,
      "'journalctl --user -n 20' may tell more.",
    );
  }

  /** Runs one command after the other. @throws AgentError `service_failed` */
  async mustAll(commands: readonly (readonly string[])[]): Promise<void> {
    for (const args of commands) await this.must(...args);
  }

  /** State of units, by name. */
  async units(names: readonly string[]): Promise<ReadonlyMap<string, Unit>> {
    const text = await this.must("show", `--property=${PROPERTIES.join(",")}`, "--", ...names);
    const blocks = text.trimEnd().split("\n\n");
    return new Map(names.map((name, index) => [name, parseUnit(blocks[index] ?? "")]));
  }

  /** Folders with unit files, in the order in which they count. */
  async unitPath(): Promise<readonly string[]> {
    return (await this.must("show", "--property=UnitPath", "--value")).trim().split(" ");
  }

  /** Variables that services get; undefined if the manager does not answer. */
  async environment(): Promise<Readonly<Record<string, string>> | undefined> {
    const { code, stdout } = await this.run("show-environment");
    if (code !== 0) return undefined;
    const pairs = stdout.split("\n").flatMap((line) => {
      const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name, unquoted(value)] as const];
    });
    return Object.fromEntries(pairs);
  }
}

export function isActive({ ActiveState: state }: Unit): boolean {
  return ["active", "activating", "reloading"].includes(state);
}

function parseUnit(block: string): Unit {
  const found = new Map<string, string>();
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^(\w+)=(.*)$/.exec(line) ?? [];
    // A socket unit may have several lines `Listen`.
    if (!found.has(name)) found.set(name, value);
  }
  return Object.fromEntries(PROPERTIES.map((name) => [name, found.get(name) ?? ""])) as Unit;
}

/** systemctl quotes a value with special characters as a shell does: $'a\'b'. */
function unquoted(value: string): string {
  const inside = /^\$'(.*)'$/.exec(value)?.[1];
  return inside === undefined ? value : inside.replace(/\\(.)/g, "$1");
}
