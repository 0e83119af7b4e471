export { ConfigError, formatProblem, type ConfigErrorCode, type ConfigProblem } from "./problem.ts";
export { duration } from "./duration.ts";
export { validateConfig, type ConfigPlace, type Locate } from "./validate.ts";
export { environmentKeys, environmentValue, type EnvironmentKey } from "./environment.ts";
export { keyText, keysAt, schemaAt } from "./issue.ts";
