import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** Whether this user may run the file. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether this user may run the program: one in PATH, or the file if the name is a path. */
export function canRun(program: string, environment: NodeJS.ProcessEnv): boolean {
  if (isAbsolute(program) || program.includes("/")) return isExecutable(program);
  return (environment["PATH"] ?? "").split(delimiter).some((folder) => isExecutable(join(folder, program)));
}
