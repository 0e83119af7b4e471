import { countOf, flagOf, printResult, printTable } from "@devplat/cli";
import type { z } from "zod";
import { printLine } from "@devplat/base/terminal";
import type { repositorySchema } from "../admin-api/cached-repos.ts";
import { SvcError } from "../errors.ts";
import { splitRepository } from "../repository-name.ts";
import { callApi } from "./api-client.ts";
import type { Invocation, RunCommand } from "./command.ts";

type Repository = z.output<typeof repositorySchema>;
const PATH = "/api/cached-repos";

export const list: RunCommand = async ({ options }) => {
  const found = (await callApi("GET", PATH)) as Repository[];
  printResult(options, found, () =>
    printTable(
      ["REPOSITORY", "STATE", "TIMEOUT", "LIMIT", "BYTES", "HITS", "MISSES"],
      found.map((each) => [
        `${each.owner}/${each.name}`,
        each.enabled ? "enabled" : "disabled",
        `${each.timeout_seconds}s`,
        each.max_cache_size_mb === null ? "none" : `${each.max_cache_size_mb}MB`,
        String(each.stats.size_bytes),
        String(each.stats.hits),
        String(each.stats.misses),
      ]),
    ),
  );
};

export const add: RunCommand = async ({ positionals: [text = ""], options }) => {
  const { owner, name } = parts(text);
  const [timeout, limit] = [countOf(options, "timeout"), countOf(options, "limit")];
  const added = (await callApi("POST", flagOf(options, "check") ? `${PATH}?check=true` : PATH, {
    owner,
    name,
    enabled: !flagOf(options, "disabled"),
    ...(timeout === undefined ? {} : { timeout_seconds: timeout }),
    ...(limit === undefined ? {} : { max_cache_size_mb: limit }),
  })) as Repository;
  printResult(options, added, () => printLine(`added ${added.owner}/${added.name}`));
};

export const set: RunCommand = async ({ positionals: [text = ""], options }) => {
  const [timeout, limit] = [countOf(options, "timeout"), countOf(options, "limit")];
  const change = {
    ...(timeout === undefined ? {} : { timeout_seconds: timeout === "default" ? null : timeout }),
    ...(limit === undefined ? {} : { max_cache_size_mb: limit === "none" ? null : limit }),
    ...(flagOf(options, "enable") ? { enabled: true } : {}),
    ...(flagOf(options, "disable") ? { enabled: false } : {}),
  };
  if (Object.keys(change).length === 0) {
    throw new SvcError("usage", "Give what to change: --timeout, --limit, --enable or --disable");
  }
  const { id } = await find(text);
  const changed = (await callApi("PATCH", `${PATH}/${id}`, change)) as Repository;
  printResult(options, changed, () => {
    const cap = changed.max_cache_size_mb === null ? "no limit" : `${changed.max_cache_size_mb} MB`;
    const state = changed.enabled ? "enabled" : "disabled";
    printLine(`${changed.owner}/${changed.name}: ${state}, ${changed.timeout_seconds} s, ${cap}`);
  });
};

export const remove: RunCommand = (invocation) =>
  deed(invocation, "removed", async (id) => callApi("DELETE", `${PATH}/${id}`));

export const purge: RunCommand = (invocation) =>
  deed(invocation, "purging", async (id) => callApi("POST", `${PATH}/${id}/purge`));

export const warm: RunCommand = (invocation) =>
  deed(invocation, "warming", async (id) => callApi("POST", `${PATH}/${id}/warm`));

/** Does something with one repository, and says it in a word. */
async function deed(
  { positionals: [text = ""], options }: Invocation,
  outcome: string,
  act: (id: string) => Promise<unknown>,
): Promise<void> {
  const { id, owner, name } = await find(text);
  await act(id);
  const repository = `${owner}/${name}`;
  printResult(options, { outcome, repository }, () => printLine(`${outcome} ${repository}`));
}

async function find(text: string): Promise<Repository> {
  const { owner, name } = parts(text);
  const key = `${owner}/${name}`.toLowerCase();
  const all = (await callApi("GET", PATH)) as Repository[];
  const found = all.find((each) => `${each.owner}/${each.name}`.toLowerCase() === key);
  if (found !== undefined) return found;
  throw new SvcError("not_found", `${owner}/${name} is not on the cache list`, {
    hint: "'svc repo list' shows what is.",
  });
}

function parts(text: string): { owner: string; name: string } {
  const split = splitRepository(text);
  if (typeof split === "string")
    throw new SvcError("usage", `The repository ${JSON.stringify(text)}: ${split}`);
  return split;
}
