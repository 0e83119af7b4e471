import { AppError } from "@devplat/base";

/** One fault of a configuration. `line` and `column` count from 1; 0 where the source has no lines (environment). */
export interface ConfigProblem {
  /** The file's path, or the name of the environment variable. */
  readonly source: string;
  readonly line: number;
  readonly column: number;
  /** Dotted path of the key (`cache.timeout`, `rules[0].target.path`), empty for the whole document. */
  readonly key: string;
  /** What is wrong, without quoting the value: a configuration may hold secrets. */
  readonly message: string;
}

/** `svc.yaml:3:5: cache.enabled: expected true or false` */
export function formatProblem(problem: ConfigProblem): string {
  const place = problem.line > 0 ? `${problem.source}:${problem.line}:${problem.column}` : problem.source;
  return [place, problem.key, problem.message].filter((part) => part !== "").join(": ");
}

/** `config_unreadable`: the file could not be read. `config_invalid`: it was read and is wrong. */
export type ConfigErrorCode = "config_unreadable" | "config_invalid";

export class ConfigError extends AppError<ConfigErrorCode> {
  readonly problems: readonly ConfigProblem[];

  constructor(code: ConfigErrorCode, problems: readonly ConfigProblem[], cause?: unknown) {
    super(code, problems.map(formatProblem).join("\n"), { cause });
    this.problems = problems;
  }
}
