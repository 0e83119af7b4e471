import { readFileSync } from "node:fs";
import type { z } from "zod";
import { printResult, textOf, textsOf } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import type { explanationSchema } from "../admin-api/scopes.ts";
import { SvcError } from "../errors.ts";
import { callApi } from "./api-client.ts";
import type { RunCommand } from "./command.ts";

/** Prints whether the request is allowed, and why; exit code 1 if it is not. */
export const explain: RunCommand = async ({ positionals: [url], options }) => {
  const given = textOf(options, "token");
  // In no list of processes.
  const token = given === "-" ? readFileSync(0, "utf8").trim() : given;
  const repositories = textsOf(options, "repository").flatMap((names) => names.split(","));
  const [scopes, method, graphql] = ["scopes", "method", "graphql"].map((name) => textOf(options, name));
  const found = (await callApi("POST", "/api/scopes/explain", {
    ...(token === undefined ? {} : { token }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(repositories.length === 0 ? {} : { repositories }),
    ...(url === undefined ? {} : { url }),
    ...(method === undefined ? {} : { method: method.toUpperCase() }),
    ...(graphql === undefined ? {} : { graphql: queryText(graphql) }),
  })) as z.output<typeof explanationSchema>;
  printResult(options, found, () => {
    printLine(`${found.allowed ? "allowed" : "refused"}: ${found.message}`);
    printLine(`rule: ${found.rule}`);
    if (found.needs.length > 0) printLine(`needs: ${found.needs.join(", ")}`);
    if (found.repositories.length > 0) printLine(`for: ${found.repositories.join(", ")}`);
  });
  return found.allowed ? 0 : 1;
};

function queryText(given: string): string {
  if (!given.startsWith("@")) return given;
  try {
    return readFileSync(given.slice(1), "utf8");
  } catch (error) {
    throw new SvcError("usage", `The query's file ${given.slice(1)} cannot be read`, { cause: error });
  }
}
