import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { AgentError } from "../errors.ts";
import type { Platform } from "../platform/platform.ts";
import { childEnvironment } from "../platform/child-environment.ts";
import type { ConfigFile } from "./file.ts";
import { MAX_REGISTRY_FILE_BYTES, readRegistryFile } from "./registry-file.ts";
import { REGISTRY_ROOT, fromRegistry } from "./registry-values.ts";

/** Time limit of one run of reg.exe, in milliseconds. It needs some 50. */
const REG_TIMEOUT_MS = 10_000;
/** The key of all policies, which every Windows has. */
const POLICIES = "HKLM\\SOFTWARE\\Policies";

/** Reads the configuration that the host's policy sets for all users; undefined without one. */
export type ReadPolicy = () => Promise<ConfigFile | undefined>;

export function policyOf({ system }: Platform, environment: NodeJS.ProcessEnv): ReadPolicy {
  return system === "win32" ? () => readRegistryPolicy(environment) : async () => undefined;
}

/**
 * Reads the policy of a Windows host. Only administrators can write below its key.
 *
 * It is exported as a registry file, because the listing of `reg query` loses the difference between a list and a text with
 * backslashes, and letters that the console's code page does not have.
 *
 * @throws AgentError `policy_unreadable` | `registry_file_invalid`. A policy that cannot be read is never taken for none
 */
async function readRegistryPolicy(environment: NodeJS.ProcessEnv): Promise<ConfigFile | undefined> {
  const listing = await runReg(["query", POLICIES, "/reg:64"], environment);
  if (!hasKey(listing, REGISTRY_ROOT)) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "daemon-policy-"));
  try {
    const file = join(folder, "policy.reg");
    await runReg(["export", REGISTRY_ROOT, file, "/y", "/reg:64"], environment);
    const bytes = await readFile(file);
    if (bytes.length > MAX_REGISTRY_FILE_BYTES) throw unreadable();
    const value = fromRegistry(readRegistryFile(REGISTRY_ROOT, bytes));
    if (Object.keys(value).length === 0) return undefined;
    return { path: REGISTRY_ROOT, text: stringify(value), groupWritable: false, trusted: true };
  } catch (error) {
    throw error instanceof AgentError ? error : unreadable(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Whether a listing of `reg query` names a key. The registry ignores letter case. */
export function hasKey(listing: string, key: string): boolean {
  return listing.split(/\r?\n/).some((line) => line.trim().toLowerCase() === key.toLowerCase());
}

async function runReg(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<string> {
  try {
    const options = { env: childEnvironment(environment), timeout: REG_TIMEOUT_MS, windowsHide: true };
    const run = promisify(execFile)("reg.exe", args, options);
    run.child.stdin?.end();
    return (await run).stdout;
  } catch (error) {
    throw unreadable(error);
  }
}

function unreadable(cause?: unknown): AgentError {
  return new AgentError("policy_unreadable", `cannot read the policy ${REGISTRY_ROOT}`, {
    hint: `Run 'reg query ${POLICIES}' to see why.`,
    ...(cause !== undefined && { cause }),
  });
}
