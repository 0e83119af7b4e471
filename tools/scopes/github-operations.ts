import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { RestOperation } from "./rest-table.ts";

/** Every operation of GitHub's published OpenAPI description, in its order; read from its types. */
export function githubOperations(): RestOperation[] {
  const folder = createRequire(import.meta.url).resolve("@octokit/openapi-types/package.json");
  const text = readFileSync(new URL("types.d.ts", `file://${folder}`), "utf8");
  const operations: RestOperation[] = [];
  let template: string | undefined;
  for (const line of text.slice(0, text.indexOf("\nexport interface components")).split("\n")) {
    template = /^ {2}"(\/[^"]*)": \{/.exec(line)?.[1] ?? template;
    const method = /^ {4}(get|put|post|delete|patch|head|options): operations\["/.exec(line)?.[1];
    // `{base}...{head}` is the same route as `{basehead}`, written with two parameters in one segment.
    if (method !== undefined && template !== undefined && !template.includes("}...{")) {
      operations.push({ method: method.toUpperCase(), template });
    }
  }
  return operations;
}
