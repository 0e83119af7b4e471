export { TestkitError, type TestkitErrorCode } from "./errors.ts";
export { gitEnvironment } from "./git-environment.ts";
export { git, run, type Finished, type RunOptions } from "./process.ts";
export { tempFolder, type TempFolder } from "./temp-folder.ts";
export { freePort } from "./free-port.ts";
export { loopSeconds, testSeed } from "./effort.ts";
export * as repositories from "./repositories/repositories.ts";
export type { LinearOptions, RepositoryOptions } from "./repositories/repositories.ts";
export {
  History,
  type CommitPlan,
  type Entry,
  type Mark,
  type ObjectFormat,
} from "./repositories/history.ts";
export {
  startCodeHost,
  type AddRepositoryOptions,
  type CodeHost,
  type CodeHostOptions,
} from "./code-host/code-host.ts";
export type { Call } from "./code-host/calls.ts";
export type { Fault, FaultMatch } from "./code-host/faults.ts";
export type { Visibility } from "./code-host/access.ts";
