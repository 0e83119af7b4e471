export { ConfigError, formatProblem, type ConfigErrorCode, type ConfigProblem } from "./problem.ts";
export { MAX_CONFIG_BYTES, parseConfigDocument, validateConfig, type ConfigDocument } from "./document.ts";
export { environmentKeys, environmentValue, type EnvironmentKey } from "./environment.ts";
export { keysAt, schemaAt } from "./issue.ts";
export { suggest } from "./suggest.ts";
