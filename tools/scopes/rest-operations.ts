import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export interface RestOperation {
  readonly method: string;
  /** Path template of the OpenAPI description: `/repos/{owner}/{repo}/issues`. */
  readonly template: string;
}

/** Every operation of the code host's published OpenAPI description, in its order; read from its types. */
export function publishedRestOperations(): RestOperation[] {
  const folder = createRequire(import.meta.url).resolve("@octokit/openapi-types/package.json");
  const text = readFileSync(new URL("types.d.ts", `file://${folder}`), "utf8");
  const operations: RestOperation[] = [];
  let template: string | undefined;
  for (const line of text.slice(0, text.indexOf("\nexport interface components")).split("\n")) {
    template = /^ {2}"(\/[^"]*)": \{/.exec(line)?.[1] ?? template;
    const method = /^ {4}(get|put|post|delete|patch|head|options): operations\["/.exec(line)?.[1];
    if (method !== undefined && template !== undefined) {
      operations.push({ method: method.toUpperCase(), template });
    }
  }
  return operations;
}
