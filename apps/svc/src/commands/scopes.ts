import type { z } from "zod";
import { printResult, textOf, textsOf } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import type { explanationSchema } from "../admin-api/scopes.ts";
import { callApi, readInput } from "./api-client.ts";
import type { RunCommand } from "./command.ts";

/** Prints whether the request is allowed, and why; exit code 1 if it is not. */
export const explain: RunCommand = async ({ positionals: [url], options }) => {
  const token = textOf(options, "token");
  const repositories = textsOf(options, "repository").flatMap((names) => names.split(","));
  const graphql = textOf(options, "graphql");
  const found = await callApi<z.output<typeof explanationSchema>>("POST", "/api/scopes/explain", {
    // A token on standard input is not visible in the list of processes.
    token: token === "-" ? (await readInput("-")).trim() : token,
    scopes: textOf(options, "scopes"),
    repositories: repositories.length === 0 ? undefined : repositories,
    url,
    method: textOf(options, "method")?.toUpperCase(),
    graphql: graphql?.startsWith("@") ? await readInput(graphql.slice(1)) : graphql,
  });
  printResult(options, found, () => {
    printLine(`${found.allowed ? "allowed" : "refused"}: ${found.message}`);
    printLine(`rule: ${found.rule}`);
    if (found.needs.length > 0) printLine(`needs: ${found.needs.join(", ")}`);
    if (found.repositories.length > 0) printLine(`for: ${found.repositories.join(", ")}`);
  });
  return found.allowed ? 0 : 1;
};
