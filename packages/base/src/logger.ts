import { pino, type DestinationStream, type LoggerOptions as LoggerConfiguration } from "pino";
import { Secret } from "./secret.ts";
import { visibleJson } from "./terminal/visible.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
/** `auto` is text on a terminal, else JSON. */
export const LOG_FORMATS = ["auto", "text", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export type LogFields = Readonly<Record<string, unknown>>;

/** Writes one line for each event: fields, and a short constant message. The fields never hold a secret. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger;
}

export interface LoggerOptions {
  /** Default `info`. A function is called for each line, also for lines of loggers that {@link Logger.child} made. */
  readonly level?: LogLevel | (() => LogLevel);
  /** Default `auto`. */
  readonly format?: LogFormat;
  /** Default: standard error. */
  readonly destination?: { write(line: string): void };
  /** Whether lines of one turn of the event loop are written together. Default false. */
  readonly gathers?: boolean;
  /** Also gets each line, always as JSON. */
  readonly copyTo?: (line: string) => void;
  /** Whether the destination is a terminal (for `auto`). Default: whether standard error is one. */
  readonly isTerminal?: boolean;
}

/** A logger for a program. An error in the field `err` is written with code, message and remedy, at `debug` with its stack. */
export function createLogger(options: LoggerOptions = {}): Logger {
  const levelNow = typeof options.level === "function" ? options.level : undefined;
  const level = typeof options.level === "function" ? LOG_LEVELS[0] : (options.level ?? "info");
  const given = options.destination ?? { write: (line: string): void => void process.stderr.write(line) };
  const raw = options.gathers === true ? new GatheredLines((lines) => given.write(lines)) : given;
  const terminal = options.isTerminal ?? process.stderr.isTTY;
  const text = options.format === "text" || (options.format !== "json" && terminal);
  const { copyTo } = options;
  const destination: DestinationStream =
    text || copyTo !== undefined
      ? {
          write: (line) => {
            raw.write(text ? textLine(line) : line);
            copyTo?.(line);
          },
        }
      : raw;
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      ...(levelNow === undefined ? {} : { hooks: { logMethod: atLeast(levelNow) } }),
      formatters: { level: (label) => ({ level: label }) },
      serializers: {
        err: (error: unknown) => serializeError(error, (levelNow?.() ?? level) === "debug"),
      },
    },
    destination,
  );
}

/** A logger that writes nothing, for tests and for commands that print their own errors. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

/** A hook that drops lines below the current level. */
function atLeast(
  levelNow: () => LogLevel,
): NonNullable<NonNullable<LoggerConfiguration["hooks"]>["logMethod"]> {
  return function logMethod(parameters, method, level) {
    if (level >= (pino.levels.values[levelNow()] ?? 0)) method.apply(this, parameters);
  };
}

function serializeError(error: unknown, withStack: boolean): unknown {
  if (!(error instanceof Error)) return error instanceof Secret ? error.toString() : error;
  return {
    type: error.name,
    message: error.message,
    ...("code" in error ? { code: error.code } : {}),
    ...("remedy" in error ? { remedy: error.remedy } : {}),
    ...(withStack ? { stack: error.stack } : {}),
  };
}

/** Text for a terminal: `12:00:00 info  message key=value`. */
function textLine(json: string): string {
  const { time, level, msg, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const clockTime = String(time).slice(11, 19);
  const pairs = Object.entries(fields).map(([key, value]) => `${key}=${fieldText(value)}`);
  return `${[clockTime, String(level).padEnd(5), String(msg), ...pairs].join(" ")}\n`;
}

function fieldText(value: unknown): string {
  if (typeof value === "object" && value !== null && "message" in value) return visibleJson(value.message);
  if (typeof value === "string" && /^[\w./:@+-]+$/.test(value)) return value;
  return visibleJson(value);
}

/**
 * Writes the log lines of one turn of the event loop together. A request ends with a line of the access log and one of the audit
 * log, and each write costs a call to the system that wakes the reader.
 */
export class GatheredLines {
  readonly #write: (text: string) => void;
  #lines = "";
  readonly #flush = (): void => {
    const lines = this.#lines;
    this.#lines = "";
    if (lines !== "") this.#write(lines);
  };

  /** @param write must have written when it returns, because the process may end then */
  constructor(write: (text: string) => void) {
    this.#write = write;
    process.on("exit", this.#flush);
  }

  write(line: string): void {
    if (this.#lines === "") setImmediate(this.#flush);
    this.#lines += line;
  }
}
