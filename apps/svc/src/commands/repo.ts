import { countOf, flagOf, printResult } from "@devplat/cli";
import type { z } from "zod";
import { noteLine, printLine } from "@devplat/base/terminal";
import type { repositorySchema } from "../admin-api/cached-repos.ts";
import { SvcError } from "../errors.ts";
import { splitRepository } from "../repository-name.ts";
import { callApi, listCommand } from "./api-client.ts";
import type { RunCommand } from "./command.ts";

type Repository = z.output<typeof repositorySchema>;
const PATH = "/api/cached-repos";

export const list = listCommand<Repository>(
  PATH,
  {
    REPOSITORY: ({ owner, name }) => `${owner}/${name}`,
    STATE: ({ enabled }) => (enabled ? "enabled" : "disabled"),
    TIMEOUT: (each) => `${each.timeout_seconds}s`,
    LIMIT: (each) => (each.max_cache_size_mb === null ? "none" : `${each.max_cache_size_mb}MB`),
    BYTES: ({ stats }) => String(stats.size_bytes),
    BUCKET: ({ stats: { bucket } }) => (bucket === null ? "-" : String(bucket.size_bytes ?? "?")),
    WAITING: ({ stats: { bucket } }) => (bucket === null ? "-" : String(bucket.waiting)),
    HITS: ({ stats }) => String(stats.hits),
    MISSES: ({ stats }) => String(stats.misses),
    // The last one, because scripts read the others by their places. An earlier version does not say it.
    SEED: ({ stats }) => String((stats.seed as Repository["stats"]["seed"] | undefined)?.bytes ?? "-"),
  },
  sourceOf,
);

/** Whose figures a list shows. Undefined: those of the only instance, or an earlier version does not say it. */
function sourceOf([first]: readonly Repository[]): string | undefined {
  const { instances = 1, figures_age_seconds: age, bucket } = first?.stats ?? {};
  if (typeof instances !== "number" || instances <= 1) return undefined;
  const shared = bucket === null ? "" : " BUCKET is shared by all.";
  const own = bucket === null ? "SEED is" : "SEED and WAITING are";
  return (
    `note: figures of ${instances} instances, those of the others up to ${age} s old.${shared} ` +
    `${own} of the instance that answers.`
  );
}

export const add: RunCommand = async ({ positionals: [text = ""], options }) => {
  const { owner, name } = parts(text);
  const added = await callApi<Repository>("POST", flagOf(options, "check") ? `${PATH}?check=true` : PATH, {
    owner,
    name,
    enabled: !flagOf(options, "disabled"),
    timeout_seconds: countOf(options, "timeout"),
    max_cache_size_mb: countOf(options, "limit"),
  });
  printResult(options, added, () => printLine(`added ${added.owner}/${added.name}`));
};

export const set: RunCommand = async ({ positionals: [text = ""], options }) => {
  const [timeout, limit] = [countOf(options, "timeout"), countOf(options, "limit")];
  const change = {
    timeout_seconds: timeout === "default" ? null : timeout,
    max_cache_size_mb: limit === "none" ? null : limit,
    enabled: flagOf(options, "enable") || (flagOf(options, "disable") ? false : undefined),
    seed: flagOf(options, "seeds") || (flagOf(options, "no-seeds") ? false : undefined),
    bundles: flagOf(options, "bundles") || (flagOf(options, "no-bundles") ? false : undefined),
  };
  if (Object.values(change).every((value) => value === undefined)) {
    throw new SvcError(
      "usage",
      "Give what to change: --timeout, --limit, --seeds, --no-seeds, --bundles, --no-bundles, --enable or --disable",
    );
  }
  const { id } = await find(text);
  const changed = await callApi<Repository>("PATCH", `${PATH}/${id}`, change);
  printResult(options, changed, () => {
    const cap = changed.max_cache_size_mb === null ? "no limit" : `${changed.max_cache_size_mb} MB`;
    const state = changed.enabled ? "enabled" : "disabled";
    // An earlier version has no seeds.
    const seeds = (changed.seed as boolean | undefined) === false ? ", no seeds" : "";
    const more = `${seeds}${changed.bundles ? ", bundles" : ""}`;
    printLine(`${changed.owner}/${changed.name}: ${state}, ${changed.timeout_seconds} s, ${cap}${more}`);
  });
};

export const remove = repositoryCommand("removed", "DELETE");

/** Seconds to wait for the removal. The command line gives up after 60. */
const PURGE_SECONDS = 30;

export const purge: RunCommand = async ({ positionals: [text = ""], options }) => {
  const { id, owner, name } = await find(text);
  // An earlier version sends no body.
  const answer = await callApi<{ readonly state?: string } | undefined>(
    "POST",
    `${PATH}/${id}/purge?wait=${PURGE_SECONDS}`,
  );
  const outcome = answer?.state === "purged" ? "purged" : "purging";
  const repository = `${owner}/${name}`;
  printResult(options, { outcome, repository }, () => {
    printLine(`${outcome} ${repository}`);
    if (outcome === "purging") {
      noteLine("The data is not served any more. It is still being removed from the disk or the bucket.");
    }
  });
};

export const warm = repositoryCommand("warming", "POST", "/warm");

/** A command that sends one request about a repository, and prints the outcome. */
function repositoryCommand(outcome: string, method: "DELETE" | "POST", path = ""): RunCommand {
  return async ({ positionals: [text = ""], options }) => {
    const { id, owner, name } = await find(text);
    await callApi(method, `${PATH}/${id}${path}`);
    const repository = `${owner}/${name}`;
    printResult(options, { outcome, repository }, () => printLine(`${outcome} ${repository}`));
  };
}

async function find(text: string): Promise<Repository> {
  const { owner, name } = parts(text);
  const key = `${owner}/${name}`.toLowerCase();
  const all = await callApi<Repository[]>("GET", PATH);
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
