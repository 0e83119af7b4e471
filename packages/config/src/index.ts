export { ConfigError, formatProblem, type ConfigProblem } from "./problem.ts";
export { duration } from "./duration.ts";
export { validateConfig, type ConfigPlace, type Locate } from "./validate.ts";
export { environmentKeys, environmentValue } from "./environment.ts";
export { keyText, keysAt } from "./issue.ts";
