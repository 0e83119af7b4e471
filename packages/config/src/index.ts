export { ConfigError, formatProblem, type ConfigErrorCode, type ConfigProblem } from "./problem.ts";
export {
  MAX_CONFIG_BYTES,
  locateIn,
  parseConfigDocument,
  validateConfig,
  type ConfigDocument,
  type ConfigPlace,
  type Locate,
} from "./document.ts";
export { duration } from "./duration.ts";
export { environmentKeys, environmentValue, type EnvironmentKey } from "./environment.ts";
export { keyText, keysAt, schemaAt } from "./issue.ts";
