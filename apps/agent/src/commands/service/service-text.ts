import { printLine } from "@devplat/base/terminal";
import { BRAND } from "../../brand.ts";
import type {
  ChangeReport,
  FileOutcome,
  FileReport,
  ManagerName,
  ServiceState,
} from "../../service/service.ts";

const KEPT = "you have changed it, so it stays";

/** Prints what an installation or a removal has done. */
export function printChanges(
  {
    manager,
    files,
    actions,
    notes,
    changed,
    dry_run: dryRun,
    pid = null,
  }: ChangeReport & {
    readonly manager: ManagerName;
    readonly changed: boolean;
    readonly dry_run: boolean;
    readonly pid?: number | null;
  },
  goal: "installed" | "removed",
): void {
  const would = dryRun ? "would have " : "";
  for (const file of files) {
    const text = fileText(file);
    if (text !== undefined) printLine(file.outcome === "kept" ? text : `${would}${text}`);
  }
  for (const action of actions) printLine(`${would}${action}`);
  if (!changed) {
    const state = goal === "installed" ? `the service of ${manager} is installed` : "there is no service";
    printLine(`nothing ${dryRun ? "would change" : "changed"}: ${state}`);
  }
  if (pid !== null && !dryRun) printLine(`${BRAND.command} runs with PID ${pid}, and answers`);
  for (const note of notes) printLine(note);
}

const VERBS: Readonly<Partial<Record<FileOutcome, string>>> = {
  written: "written",
  replaced: "replaced",
  removed: "removed",
};

function fileText({ path, outcome, backup }: FileReport): string | undefined {
  if (outcome === "kept")
    return `kept ${path}: ${KEPT}; '${BRAND.command} service install --force' replaces it`;
  const verb = VERBS[outcome];
  if (verb === undefined) return undefined;
  return `${verb} ${path}${backup === undefined ? "" : `; your version is now ${backup}`}`;
}

/** Prints the state of the service. */
export function printState({
  manager,
  installed,
  enabled,
  active,
  pid,
  since,
  restarts,
  last_exit: exit,
  answers,
  files,
  sockets,
  problems,
}: ServiceState & { readonly manager: ManagerName; readonly answers: boolean | null }): void {
  if (installed) {
    const row = (name: string, text: string): void => printLine(`${`${name}:`.padEnd(12)}${text}`);
    row(
      "Service",
      `installed for ${manager}, ${enabled ? "starts when you log in" : "does not start by itself"}`,
    );
    row("State", `${active}${pid === null ? "" : `, PID ${pid}`}${since === null ? "" : `, since ${since}`}`);
    row(
      "Answers",
      answers === null
        ? active === "active"
          ? "cannot be asked: neither api nor web is enabled"
          : "not asked"
        : answers
          ? "yes"
          : "no",
    );
    if (restarts !== null && restarts > 0) row("Restarts", String(restarts));
    if (exit !== null) row("Last exit", exit);
    for (const { name, path, enabled: on, active: open } of sockets)
      if (on || open) row("Socket", `${name}, ${path ?? ""}, ${open ? "open" : "not open"}`);
    for (const { path, outcome } of files)
      row(
        "File",
        `${path}${outcome === "kept" ? " (yours)" : outcome === "packaged" ? " (of a package)" : ""}`,
      );
  } else printLine(`there is no service; '${BRAND.command} service install' makes one`);
  for (const problem of problems) printLine(`Problem: ${problem}`);
}
