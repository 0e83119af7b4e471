import { readFile } from "node:fs/promises";
import { text as readAll } from "node:stream/consumers";
import { systemCode } from "@devplat/base";
import { printJson, printLine } from "@devplat/base/terminal";
import type { z } from "zod";
import type { appSchema } from "../admin-api/apps.ts";
import { SvcError } from "../errors.ts";
import { callApi } from "./api-client.ts";
import { printTable } from "./table.ts";

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

export async function listApps(json: boolean): Promise<void> {
  const found = (await callApi("GET", PATH)) as App[];
  if (json) {
    printJson(found);
    return;
  }
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
  );
}

/** @param options.key path of the PEM file; `-` is standard input: a key is no argument, as others see those */
export async function addApp(
  appId: string,
  options: { readonly key: string; readonly default?: boolean; readonly json?: boolean },
): Promise<void> {
  const app = (await callApi("POST", PATH, {
    app_id: appId,
    private_key: await readKey(options.key),
    ...(options.default === true ? { is_default: true } : {}),
  })) as App;
  if (options.json === true) printJson(app);
  else printLine(`registered ${app.name} (${app.app_id})${app.is_default ? ", the default" : ""}`);
}

export async function checkApp(which: string, json: boolean): Promise<void> {
  const { id } = await find(which);
  const checked = (await callApi("POST", `${PATH}/${id}/check`)) as Checked;
  if (json) {
    printJson(checked);
    return;
  }
  const { app, permissions, installations } = checked;
  printLine(`${app.name} (${app.app_id}): its key works`);
  for (const [name, level] of Object.entries(permissions)) printLine(`may     ${name}:${level}`);
  for (const { account, repositories, suspended } of installations) {
    printLine(`on      ${account}: ${repositories}${suspended ? ", suspended" : ""}`);
  }
  if (installations.length === 0) printLine(`install it at ${app.install_url ?? "the code host"}`);
}

export async function setApp(
  which: string,
  options: { readonly key?: string; readonly default?: boolean },
): Promise<void> {
  if (options.key === undefined && options.default !== true) {
    throw new SvcError("usage", "Give what to change: --key or --default");
  }
  const { id } = await find(which);
  const app = (await callApi("PATCH", `${PATH}/${id}`, {
    ...(options.key === undefined ? {} : { private_key: await readKey(options.key) }),
    ...(options.default === true ? { is_default: true } : {}),
  })) as App;
  printLine(`${app.name} (${app.app_id})${app.is_default ? ", the default" : ""}`);
}

export async function removeApp(which: string): Promise<void> {
  const { id, name } = await find(which);
  await callApi("DELETE", `${PATH}/${id}`);
  printLine(`removed ${name}`);
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
