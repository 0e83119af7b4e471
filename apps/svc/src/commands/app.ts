import { flagOf, printResult, textOf } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import type { z } from "zod";
import type { appSchema } from "../admin-api/apps.ts";
import { SvcError } from "../errors.ts";
import { callApi, listCommand, readInput } from "./api-client.ts";
import type { RunCommand } from "./command.ts";

type App = z.output<typeof appSchema>;
const PATH = "/api/apps";

interface CheckedApp {
  readonly app: App;
  readonly permissions: Readonly<Record<string, string>>;
  readonly installations: readonly {
    readonly account: string;
    readonly repositories: string;
    readonly suspended: boolean;
  }[];
}

export const list = listCommand<App>(PATH, {
  "APP ID": (each) => each.app_id,
  NAME: ({ name }) => name,
  OWNER: ({ owner }) => owner ?? "",
  DEFAULT: (each) => (each.is_default ? "yes" : ""),
  FROM: ({ source }) => source,
  ID: ({ id }) => id,
});

/** `--key` is the path of the PEM file, `-` standard input. A key as an argument would be visible to other users. */
export const add: RunCommand = async ({ positionals: [appId], options }) => {
  const app = await callApi<App>("POST", PATH, {
    app_id: appId,
    private_key: await readInput(textOf(options, "key") ?? ""),
    is_default: flagOf(options, "default") || undefined,
  });
  printResult(options, app, () => printLine(`registered ${nameOf(app)}`));
};

export const check: RunCommand = async ({ positionals: [which = ""], options }) => {
  const { id } = await find(which);
  const checked = await callApi<CheckedApp>("POST", `${PATH}/${id}/check`);
  printResult(options, checked, () => {
    const { app, permissions, installations } = checked;
    printLine(`${app.name} (${app.app_id}): its key works`);
    for (const [name, level] of Object.entries(permissions)) printLine(`may     ${name}:${level}`);
    for (const { account, repositories, suspended } of installations) {
      printLine(`on      ${account}: ${repositories}${suspended ? ", suspended" : ""}`);
    }
    if (installations.length === 0) printLine(`install it at ${app.install_url ?? "the code host"}`);
  });
};

export const set: RunCommand = async ({ positionals: [which = ""], options }) => {
  const key = textOf(options, "key");
  if (key === undefined && !flagOf(options, "default")) {
    throw new SvcError("usage", "Give what to change: --key or --default");
  }
  const { id } = await find(which);
  const app = await callApi<App>("PATCH", `${PATH}/${id}`, {
    private_key: key === undefined ? undefined : await readInput(key),
    is_default: flagOf(options, "default") || undefined,
  });
  printResult(options, app, () => printLine(nameOf(app)));
};

export const remove: RunCommand = async ({ positionals: [which = ""], options }) => {
  const { id, name } = await find(which);
  await callApi("DELETE", `${PATH}/${id}`);
  printResult(options, { outcome: "removed", id, name }, () => printLine(`removed ${name}`));
};

function nameOf(app: App): string {
  return `${app.name} (${app.app_id})${app.is_default ? ", the default" : ""}`;
}

async function find(which: string): Promise<App> {
  const all = await callApi<App[]>("GET", PATH);
  const found = all.find((each) => [each.id, each.app_id, each.slug].includes(which));
  if (found !== undefined) return found;
  throw new SvcError("not_found", `No app ${JSON.stringify(which)} is registered`, {
    hint: "'svc app list' shows what is.",
  });
}
