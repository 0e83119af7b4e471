import { readFileSync } from "node:fs";
import { join } from "node:path";
import { giteaProgram } from "@devplat/testkit";
import type { RestOperation } from "./rest-table.ts";

const METHODS = ["get", "put", "post", "patch", "delete"];

/**
 * Every operation of the description that the pinned Gitea serves, by path. Formats of one route, such as
 * `{sha}.{diffType}`, are the route without it.
 */
export function giteaOperations(): RestOperation[] {
  const file = join(giteaProgram().staticFolder, "templates/swagger/v1_json.tmpl");
  // A template with a few texts to fill in.
  const text = readFileSync(file, "utf8").replaceAll(/\{\{[^}]*\}\}/g, "x");
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, unknown>> };
  return Object.entries(paths)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([path, methods]) =>
      METHODS.filter((method) => method in methods).map((method) => ({
        method: method.toUpperCase(),
        // The name under which the routes know a parameter that holds slashes.
        template: path.replace("{filepath}", "{path}"),
      })),
    )
    .filter(({ template }) => !template.includes("}.{"));
}
