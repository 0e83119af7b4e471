import { z } from "zod";
import { noteLine, printJson, printLine, printText } from "@devplat/base/terminal";
import { ineffective, refuseUnusable } from "../config/refusals.ts";
import { maskedConfig, printConfig } from "../config/print.ts";
import { configSchema } from "../config/schema.ts";
import { noEncryptionKey } from "../storage/encryption-key.ts";
import { readConfig, type ConfigOption } from "./settings.ts";

/** Ends well, or throws what is wrong. */
export async function checkConfig(option: ConfigOption): Promise<void> {
  const { config, file, warnings } = readConfig(option);
  refuseUnusable(config);
  const keyless = config.encryption.key === undefined && !config.dev.mode;
  if (keyless && config.database.driver !== "vault") throw noEncryptionKey();
  for (const warning of [...warnings, ...ineffective(config)]) noteLine(`warning: ${warning}`);
  printLine(`${file ?? "no file; defaults and environment"}: ok`);
}

export async function printEffectiveConfig(option: ConfigOption & { readonly json: boolean }): Promise<void> {
  const { config, warnings } = readConfig(option);
  for (const warning of warnings) noteLine(`warning: ${warning}`);
  if (option.json) printJson(maskedConfig(config));
  else printText(printConfig(config));
}

export function printConfigSchema(): void {
  const schema = z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" });
  printJson(schema);
}
