import { readFileSync } from "node:fs";
import type { z } from "zod";
import { printJson, printLine } from "@devplat/base/terminal";
import type { explanationSchema } from "../admin-api/scopes.ts";
import { SvcError } from "../errors.ts";
import { callApi } from "./api-client.ts";

export interface ExplainOptions {
  /** A token's value; `-` reads it from standard input, so that it stands in no list of processes. */
  readonly token?: string;
  readonly scopes?: string;
  readonly repository?: readonly string[];
  readonly method?: string;
  /** A GraphQL query; `@FILE` reads it from a file. */
  readonly graphql?: string;
  readonly json?: boolean;
}

/** Prints whether the request is allowed, and why; exit code 1 if it is not. */
export async function explainScopes(url: string | undefined, options: ExplainOptions): Promise<void> {
  const token = options.token === "-" ? readFileSync(0, "utf8").trim() : options.token;
  const found = (await callApi("POST", "/api/scopes/explain", {
    ...(token === undefined ? {} : { token }),
    ...(options.scopes === undefined ? {} : { scopes: options.scopes }),
    ...(options.repository === undefined ? {} : { repositories: options.repository }),
    ...(url === undefined ? {} : { url }),
    ...(options.method === undefined ? {} : { method: options.method.toUpperCase() }),
    ...(options.graphql === undefined ? {} : { graphql: queryText(options.graphql) }),
  })) as z.output<typeof explanationSchema>;
  if (options.json === true) printJson(found);
  else {
    printLine(`${found.allowed ? "allowed" : "refused"}: ${found.message}`);
    printLine(`rule: ${found.rule}`);
    if (found.needs.length > 0) printLine(`needs: ${found.needs.join(", ")}`);
    if (found.repositories.length > 0) printLine(`for: ${found.repositories.join(", ")}`);
  }
  if (!found.allowed) process.exitCode = 1;
}

function queryText(given: string): string {
  if (!given.startsWith("@")) return given;
  try {
    return readFileSync(given.slice(1), "utf8");
  } catch (error) {
    throw new SvcError("usage", `The query's file ${given.slice(1)} cannot be read`, { cause: error });
  }
}
