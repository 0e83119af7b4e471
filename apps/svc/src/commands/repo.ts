import type { z } from "zod";
import { printJson, printLine } from "@devplat/base/terminal";
import type { repositorySchema } from "../admin-api/cached-repos.ts";
import { SvcError } from "../errors.ts";
import { splitRepository } from "../repository-name.ts";
import { callApi } from "./api-client.ts";
import { printTable } from "./table.ts";

type Repository = z.output<typeof repositorySchema>;
const PATH = "/api/cached-repos";

export interface AddOptions {
  readonly timeout?: number;
  readonly limit?: number;
  readonly disabled?: boolean;
  readonly check?: boolean;
}

export interface SetOptions {
  readonly timeout?: number | "default";
  readonly limit?: number | "none";
  readonly enable?: boolean;
  readonly disable?: boolean;
}

export async function listRepositories(json: boolean): Promise<void> {
  const found = (await callApi("GET", PATH)) as Repository[];
  if (json) {
    printJson(found);
    return;
  }
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
  );
}

export async function addRepository(text: string, options: AddOptions): Promise<void> {
  const { owner, name } = parts(text);
  const added = (await callApi("POST", options.check === true ? `${PATH}?check=true` : PATH, {
    owner,
    name,
    enabled: options.disabled !== true,
    ...(options.timeout === undefined ? {} : { timeout_seconds: options.timeout }),
    ...(options.limit === undefined ? {} : { max_cache_size_mb: options.limit }),
  })) as Repository;
  printLine(`added ${added.owner}/${added.name}`);
}

export async function setRepository(text: string, options: SetOptions): Promise<void> {
  const change = {
    ...(options.timeout === undefined
      ? {}
      : { timeout_seconds: options.timeout === "default" ? null : options.timeout }),
    ...(options.limit === undefined
      ? {}
      : { max_cache_size_mb: options.limit === "none" ? null : options.limit }),
    ...(options.enable === true ? { enabled: true } : {}),
    ...(options.disable === true ? { enabled: false } : {}),
  };
  if (Object.keys(change).length === 0) {
    throw new SvcError("usage", "Give what to change: --timeout, --limit, --enable or --disable");
  }
  const { id } = await find(text);
  const changed = (await callApi("PATCH", `${PATH}/${id}`, change)) as Repository;
  const limit = changed.max_cache_size_mb === null ? "no limit" : `${changed.max_cache_size_mb} MB`;
  const state = changed.enabled ? "enabled" : "disabled";
  printLine(`${changed.owner}/${changed.name}: ${state}, ${changed.timeout_seconds} s, ${limit}`);
}

export async function removeRepository(text: string): Promise<void> {
  const { id, owner, name } = await find(text);
  await callApi("DELETE", `${PATH}/${id}`);
  printLine(`removed ${owner}/${name}`);
}

export async function purgeRepository(text: string): Promise<void> {
  const { id, owner, name } = await find(text);
  await callApi("POST", `${PATH}/${id}/purge`);
  printLine(`purging ${owner}/${name}`);
}

export async function warmRepository(text: string): Promise<void> {
  const { id, owner, name } = await find(text);
  await callApi("POST", `${PATH}/${id}/warm`);
  printLine(`warming ${owner}/${name}`);
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
