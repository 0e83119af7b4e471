import { resolve } from "node:path";
import { z } from "zod";
import { AppError } from "@devplat/base";
import { flagOf, printResult } from "@devplat/cli";
import { ConfigError } from "@devplat/config";
import { noteLine, printJson, printLine, printText } from "@devplat/base/terminal";
import { cacheFolder } from "../config/cache-folder.ts";
import type { LoadedConfig } from "../config/load.ts";
import { ineffective, refuseUnusable } from "../config/refusals.ts";
import { maskedConfig, printConfig } from "../config/print.ts";
import { configSchema, type Config } from "../config/schema.ts";
import { LITTLE_SPACE } from "../health.ts";
import { noEncryptionKey } from "../storage/encryption-key.ts";
import { lookAtFolder } from "./folder-state.ts";
import { readConfig, type GlobalFlags, type RunCommand } from "./command.ts";

/** Ends well, or says what is wrong: with `--json` as a list of problems. */
export const check: RunCommand = async ({ flags, options }) => {
  try {
    const { file, warnings, asksServers } = await usableConfig(flags);
    printResult(options, { ok: true, source: file ?? null, warnings, problems: [] }, () => {
      for (const warning of warnings) noteLine(`warning: ${warning}`);
      printLine(`${file ?? "no file; defaults and environment"}: ok`);
      if (asksServers)
        noteLine("Database, bucket and code host were not asked: run 'svc doctor' and 'svc doctor --bucket'");
    });
    return 0;
  } catch (error) {
    if (!flagOf(options, "json") || !(error instanceof AppError)) throw error;
    const problem = { source: "", line: 0, column: 0, key: "", message: error.message };
    const problems = error instanceof ConfigError ? error.problems : [problem];
    printJson({ ok: false, source: null, warnings: [], problems });
    return WRONG;
  }
};

/** Exit code of a configuration that cannot be used. */
const WRONG = 2;

/** @throws ConfigError | SvcError `config_refused` | `encryption_key` */
async function usableConfig(
  flags: GlobalFlags,
): Promise<Pick<LoadedConfig, "file" | "warnings"> & { readonly asksServers: boolean }> {
  const { config, file, warnings } = await readConfig(flags);
  refuseUnusable(config);
  if (config.cache.object_bucket !== undefined) {
    // The client of the bucket is loaded only with a bucket.
    const { checkBucketSettings } = await import("../assemble/bucket.ts");
    await checkBucketSettings(config);
  }
  if (config.server.accel !== undefined && config.cache.enabled) {
    const { accelGroupId } = await import("../assemble/accel.ts");
    await accelGroupId(config);
  }
  const keyless = config.encryption.key === undefined && !config.dev.mode;
  if (keyless && config.database.driver !== "vault") throw noEncryptionKey();
  return {
    file,
    warnings: [...warnings, ...ineffective(config), ...(await folderWarnings(config))],
    asksServers: config.cache.object_bucket !== undefined,
  };
}

/** Warnings about the folders on this machine. Only a look: the user or the machine of the service may be another one. */
async function folderWarnings(config: Config): Promise<string[]> {
  const folders: Readonly<Record<string, string>> = {
    data_dir: resolve(config.data_dir),
    ...(config.cache.enabled && {
      [config.cache.object_bucket === undefined ? "cache.storage_path" : "cache.local_path"]:
        cacheFolder(config),
    }),
  };
  const warnings: string[] = [];
  for (const [key, folder] of Object.entries(folders)) {
    const state = await lookAtFolder(folder);
    if (state.kind === "unusable") warnings.push(`${key}: ${state.reason}`);
    else if (state.freeBytes < LITTLE_SPACE)
      warnings.push(`${key}: only ${Math.floor(state.freeBytes / 1024 ** 2)} MiB are free for ${folder}`);
  }
  return warnings;
}

export const print: RunCommand = async ({ flags, options }) => {
  const { config, warnings } = await readConfig(flags);
  for (const warning of warnings) noteLine(`warning: ${warning}`);
  printResult(options, maskedConfig(config), () => printText(printConfig(config)));
  return 0;
};

export const schema: RunCommand = () => {
  printJson(z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" }));
  return Promise.resolve(0);
};
