import { readFile, stat } from "node:fs/promises";
import { systemCode } from "@devplat/base";
import { validateConfig } from "@devplat/config";
import { parseConfigDocument } from "@devplat/config/document";
import { stringify } from "yaml";
import { readConfigFile } from "../../config/file.ts";
import { parseConfig } from "../../config/load.ts";
import { MAX_REGISTRY_FILE_BYTES, readRegistryFile, writeRegistryFile } from "../../config/registry-file.ts";
import { REGISTRY_ROOT, fromRegistry, toRegistry } from "../../config/registry-values.ts";
import { configSchema } from "../../config/schema.ts";
import { AgentError } from "../../errors.ts";
import type { RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";

/** Prints a configuration file as a registry file. Default: the configuration file in use. */
export const exportRegistry: RunCommand = async (invocation) => {
  const path = invocation.positionals[0] ?? (await openContext(invocation)).loaded.sources[0] ?? "";
  const file = await readConfigFile(path);
  if (file === undefined) throw new AgentError("usage", `${path}: no such file`);
  parseConfig(file);
  const value = parseConfigDocument(path, file.text).value as Record<string, unknown>;
  process.stdout.write(writeRegistryFile(REGISTRY_ROOT, toRegistry(value)));
  return 0;
};

/** Prints the configuration of a registry file as YAML, after a check against the schema. */
export const importRegistry: RunCommand = async ({ positionals }) => {
  const [path = ""] = positionals;
  const value = fromRegistry(readRegistryFile(REGISTRY_ROOT, await read(path)));
  validateConfig(configSchema, value, () => ({ source: path, line: 0, column: 0 }));
  process.stdout.write(stringify(value));
  return 0;
};

async function read(path: string): Promise<Buffer> {
  try {
    if ((await stat(path)).size > MAX_REGISTRY_FILE_BYTES) {
      throw new AgentError("usage", `${path}: larger than ${MAX_REGISTRY_FILE_BYTES} bytes`);
    }
    return await readFile(path);
  } catch (error) {
    if (error instanceof AgentError) throw error;
    throw new AgentError("usage", `cannot read ${path} (${systemCode(error) ?? "unknown error"})`);
  }
}
