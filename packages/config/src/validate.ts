import type { z } from "zod";
import { describeIssue, keyText } from "./issue.ts";
import { ConfigError, type ConfigProblem } from "./problem.ts";

/** Place of a key; see {@link ConfigProblem}. */
export interface ConfigPlace {
  readonly source: string;
  readonly line: number;
  readonly column: number;
}

/** Finds the place of the key at a path, or of its nearest existing ancestor. */
export type Locate = (path: readonly PropertyKey[]) => ConfigPlace;

/** Checks a value against the schema. Each fault gets the place that `locate` finds for its key. */
export function validateConfig<T>(schema: z.ZodType<T>, value: unknown, locate: Locate): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.flatMap((issue) =>
    describeIssue(schema, issue).map(({ path, message }): ConfigProblem => ({
      ...locate(path),
      key: keyText(path),
      message,
    })),
  );
  throw new ConfigError("config_invalid", problems);
}
