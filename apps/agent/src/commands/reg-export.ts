import { parseConfigDocument } from "@devplat/config";
import { parseConfig } from "../config/load.ts";
import { readConfigFile } from "../config/file.ts";
import { REGISTRY_ROOT, toRegistry } from "../config/registry-values.ts";
import { writeRegistryFile } from "../config/registry-file.ts";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";

/** A configuration file as registry file, on standard output: the one that is named, else the one in use. */
export const run: RunCommand = async (invocation) => {
  const path = invocation.positionals[0] ?? (await openContext(invocation)).loaded.sources[0] ?? "";
  const file = await readConfigFile(path);
  if (file === undefined) throw new AgentError("usage", `${path}: no such file`);
  parseConfig(file);
  const value = parseConfigDocument(path, file.text).value as Record<string, unknown>;
  process.stdout.write(writeRegistryFile(REGISTRY_ROOT, toRegistry(value)));
  return 0;
};
