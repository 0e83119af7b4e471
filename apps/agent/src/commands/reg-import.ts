import { systemCode } from "@devplat/base";
import { validateConfig } from "@devplat/config";
import { readFile, stat } from "node:fs/promises";
import { stringify } from "yaml";
import { MAX_REGISTRY_FILE_BYTES, readRegistryFile } from "../config/registry-file.ts";
import { REGISTRY_ROOT, fromRegistry } from "../config/registry-values.ts";
import { configSchema } from "../config/schema.ts";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";

/** The configuration of a registry file as YAML, on standard output; checked first. */
export const run: RunCommand = async ({ positionals }) => {
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
