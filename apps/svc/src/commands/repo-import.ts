import type { z } from "zod";
import { flagOf } from "@devplat/cli";
import { noteLine, printJson, printLine } from "@devplat/base/terminal";
import type { repositorySchema } from "../admin-api/cached-repos.ts";
import { SvcError } from "../errors.ts";
import { foldCase, splitRepository } from "../repository-name.ts";
import type { RunCommand } from "./command.ts";
import { callApi, readInput } from "./api-client.ts";

type Repository = z.output<typeof repositorySchema>;

/** One line of the file. */
interface Wanted {
  readonly owner: string;
  readonly name: string;
  readonly fields: { readonly timeout_seconds?: number; readonly max_cache_size_mb?: number };
}

/**
 * Lists every repository of a file (`-`: standard input). Each line has `owner/name`, and may have `timeout=SECONDS` and
 * `limit=MB` after it; `#` begins a comment. Repositories that are listed already get the values of the file. The command
 * can be repeated. It reads the whole file before it changes anything. Exit code 1 if a repository was refused.
 *
 * @throws SvcError `usage` naming the line
 */
export const importRepositories: RunCommand = async ({ positionals: [file = ""], options }) => {
  const json = flagOf(options, "json");
  const wanted = parse(await readInput(file));
  const listed = await callApi<Repository[]>("GET", "/api/cached-repos");
  const byName = new Map(listed.map((each) => [foldCase(`${each.owner}/${each.name}`), each]));
  const outcomes: { repository: string; outcome: string; message?: string }[] = [];
  for (const { owner, name, fields } of wanted) {
    const repository = `${owner}/${name}`;
    try {
      const { outcome, record } = await put(byName.get(foldCase(repository)), { owner, name, fields });
      byName.set(foldCase(repository), record);
      outcomes.push({ repository, outcome });
      if (!json) printLine(`${outcome} ${repository}`);
    } catch (error) {
      // The others are still listed after a refusal. A service that does not answer ends the command.
      if (!(error instanceof SvcError) || error.code !== "server_refused") throw error;
      outcomes.push({ repository, outcome: "refused", message: error.message });
      if (!json) noteLine(`refused ${repository}: ${error.message}`);
    }
  }
  if (json) printJson(outcomes);
  return outcomes.some(({ outcome }) => outcome === "refused") ? 1 : 0;
};

async function put(
  known: Repository | undefined,
  { owner, name, fields }: Wanted,
): Promise<{ readonly outcome: string; readonly record: Repository }> {
  if (known === undefined) {
    const added = await callApi<Repository>("POST", "/api/cached-repos", { owner, name, ...fields });
    return { outcome: "added", record: added };
  }
  const differs =
    (fields.timeout_seconds ?? known.timeout_seconds) !== known.timeout_seconds ||
    (fields.max_cache_size_mb ?? known.max_cache_size_mb) !== known.max_cache_size_mb;
  if (!differs) return { outcome: "unchanged", record: known };
  const changed = await callApi<Repository>("PATCH", `/api/cached-repos/${known.id}`, fields);
  return { outcome: "changed", record: changed };
}

function parse(content: string): readonly Wanted[] {
  return content.split(/\r?\n/).flatMap((line, index) => {
    const [first = "", ...rest] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (first === "") return [];
    const where = `line ${index + 1}`;
    const repository = splitRepository(first);
    if (typeof repository === "string") throw new SvcError("usage", `${where}: ${repository}`);
    const fields: { timeout_seconds?: number; max_cache_size_mb?: number } = {};
    for (const option of rest) {
      const match = /^(timeout|limit)=(\d{1,10})$/.exec(option);
      if (match === null) throw new SvcError("usage", `${where}: expected timeout=SECONDS or limit=MB`);
      fields[match[1] === "timeout" ? "timeout_seconds" : "max_cache_size_mb"] = Number(match[2]);
    }
    return [{ ...repository, fields }];
  });
}
