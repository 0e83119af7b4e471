import { constants } from "node:os";
import type { Unit } from "./user-manager.ts";

/** Codes of waitid(2). */
const [EXITED, KILLED, DUMPED] = ["1", "2", "3"];

/** Why the main process of a unit ended; null while it runs, and before its first start. */
export function exitText({
  Result: result,
  ExecMainCode: code,
  ExecMainStatus: status,
}: Pick<Unit, "Result" | "ExecMainCode" | "ExecMainStatus">): string | null {
  const how =
    code === EXITED
      ? `exit code ${status}`
      : code === KILLED || code === DUMPED
        ? `signal ${signalName(Number(status))}`
        : undefined;
  if (how === undefined) return ["success", ""].includes(result) ? null : result;
  return ["success", "exit-code", "signal"].includes(result) ? how : `${result} (${how})`;
}

function signalName(number: number): string {
  return Object.entries(constants.signals).find(([, each]) => each === number)?.[0] ?? String(number);
}
