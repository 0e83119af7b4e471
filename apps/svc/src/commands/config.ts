import { z } from "zod";
import { ineffective, refuseUnusable } from "../config/refusals.ts";
import { printConfig, printConfigJson } from "../config/print.ts";
import { configSchema } from "../config/schema.ts";
import { noEncryptionKey } from "../storage/encryption-key.ts";
import { readConfig, type ConfigOption } from "./settings.ts";

/** Ends well, or throws what is wrong. */
export async function checkConfig(option: ConfigOption): Promise<void> {
  const { config, file, warnings } = readConfig(option);
  refuseUnusable(config);
  const keyless = config.encryption.key === undefined && !config.dev.mode;
  if (keyless && config.database.driver !== "vault") throw noEncryptionKey();
  for (const warning of [...warnings, ...ineffective(config)]) process.stderr.write(`warning: ${warning}\n`);
  process.stdout.write(`${file ?? "no file; defaults and environment"}: ok\n`);
}

export async function printEffectiveConfig(option: ConfigOption & { readonly json: boolean }): Promise<void> {
  const { config, warnings } = readConfig(option);
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  process.stdout.write(option.json ? `${printConfigJson(config)}\n` : printConfig(config));
}

export function printConfigSchema(): void {
  const schema = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" });
  process.stdout.write(`${JSON.stringify(schema, null, 2)}\n`);
}
