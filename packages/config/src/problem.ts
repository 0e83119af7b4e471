import { AppError, type AppErrorOptions } from "@devplat/base";

/** One fault of a configuration. `line` and `column` count from 1. They are 0 for the environment, which has no lines. */
export interface ConfigProblem {
  /** Path of the file, or name of the environment variable. */
  readonly source: string;
  readonly line: number;
  readonly column: number;
  /** Path of the key (`cache.timeout`, `rules[0].target.path`), or "" for the whole document. */
  readonly key: string;
  /** The fault. It never quotes the value, because a configuration may hold secrets. */
  readonly message: string;
}

/** Text of a fault: `svc.yaml:3:5: cache.enabled: expected true or false`. */
export function formatProblem(problem: ConfigProblem): string {
  const place = problem.line > 0 ? `${problem.source}:${problem.line}:${problem.column}` : problem.source;
  return [place, problem.key, problem.message].filter((part) => part !== "").join(": ");
}

/** `config_unreadable`: the file cannot be read. `config_invalid`: its content is wrong. */
export type ConfigErrorCode = "config_unreadable" | "config_invalid";

export class ConfigError extends AppError<ConfigErrorCode> {
  readonly problems: readonly ConfigProblem[];

  constructor(
    code: ConfigErrorCode,
    problems: readonly ConfigProblem[],
    options: Pick<AppErrorOptions, "cause" | "hint"> = {},
  ) {
    super(code, problems.map(formatProblem).join("\n"), options);
    this.problems = problems;
  }
}
