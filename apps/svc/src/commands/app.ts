import { readFile } from "node:fs/promises";
import { text as readAll } from "node:stream/consumers";
import { systemCode } from "@devplat/base";
import { flagOf, printResult, printTable, textOf } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import type { z } from "zod";
import type { appSchema } from "../admin-api/apps.ts";
import { SvcError } from "../errors.ts";
import { callApi } from "./api-client.ts";
import type { RunCommand } from "./command.ts";

type App = z.output<typeof appSchema>;
const PATH = "/api/apps";

interface Checked {
  readonly app: App;
  readonly permissions: Readonly<Record<string, string>>;
  readonly installations: readonly {
    readonly account: string;
    readonly repositories: string;
    readonly suspended: boolean;
  }[];
}

export const list: RunCommand = async ({ options }) => {
  const found = (await callApi("GET", PATH)) as App[];
  printResult(options, found, () =>
    printTable(
      ["APP ID", "NAME", "OWNER", "DEFAULT", "FROM", "ID"],
      found.map((each) => [
        each.app_id,
        each.name,
        each.owner ?? "",
        each.is_default ? "yes" : "",
        each.source,
        each.id,
      ]),
    ),
  );
};

/** `--key` is the path of the PEM file, `-` standard input: a key is no argument, as others see those. */
export const add: RunCommand = async ({ positionals: [appId], options }) => {
  const app = (await callApi("POST", PATH, {
    app_id: appId,
    private_key: await readKey(textOf(options, "key") ?? ""),
    ...(flagOf(options, "default") ? { is_default: true } : {}),
  })) as App;
  printResult(options, app, () => printLine(`registered ${nameOf(app)}`));
};

export const check: RunCommand = async ({ positionals: [which = ""], options }) => {
  const { id } = await find(which);
  const checked = (await callApi("POST", `${PATH}/${id}/check`)) as Checked;
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
  const app = (await callApi("PATCH", `${PATH}/${id}`, {
    ...(key === undefined ? {} : { private_key: await readKey(key) }),
    ...(flagOf(options, "default") ? { is_default: true } : {}),
  })) as App;
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
  const all = (await callApi("GET", PATH)) as App[];
  const found = all.find((each) => [each.id, each.app_id, each.slug].includes(which));
  if (found !== undefined) return found;
  throw new SvcError("not_found", `No app ${JSON.stringify(which)} is registered`, {
    hint: "'svc app list' shows what is.",
  });
}

async function readKey(path: string): Promise<string> {
  if (path === "-") return readAll(process.stdin);
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new SvcError("usage", `${path} cannot be read (${systemCode(error) ?? "unknown error"})`);
  }
}
