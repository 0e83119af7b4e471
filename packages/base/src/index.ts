export { AppError, messageOf, systemCode, type AppErrorOptions, type Remedy } from "./errors.ts";
export { TimeLimit, systemClock, type Clock } from "./clock.ts";
export { Secret } from "./secret.ts";
export { formatDuration, parseDuration } from "./duration.ts";
export { bindLocalhost } from "./localhost.ts";
export { pollUntil, untilAborted, within } from "./limited-wait.ts";
export { exists, folderNames, ifExists } from "./if-exists.ts";
export { backoffMs, retry, type BackoffOptions } from "./retry.ts";
export {
  TEMPORARY_SUFFIX,
  temporaryPath,
  createTemporaryFile,
  removeLeftovers,
  syncFolder,
  writeAtomically,
} from "./atomic-file.ts";
export {
  LOG_FORMATS,
  LOG_LEVELS,
  createLogger,
  silentLogger,
  type LogFields,
  type LogFormat,
  type LogLevel,
  type Logger,
  type LoggerOptions,
} from "./logger.ts";
