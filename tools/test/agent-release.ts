import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildAgent } from "../build/agent.ts";

/** The release of agent, which the tests run. */
export interface TestRelease {
  readonly launcher: string;
  remove(): Promise<void>;
}

/**
 * Builds the release of agent in a new folder. It loads few files: a command takes 0.25 s of CPU, and 0.5 s from the
 * sources. The tests start hundreds.
 */
export async function buildTestRelease(): Promise<TestRelease> {
  const folder = await mkdtemp(join(tmpdir(), "devplat-agent-"));
  // Tests start it as another user, too.
  await chmod(folder, 0o755);
  const launcher = await buildAgent(join(folder, "release"));
  const text = await readFile(launcher, "utf8");
  const settings = `AGENT_NODE=${quoted(process.execPath)}\nNODE_COMPILE_CACHE=${quoted(join(folder, "compile"))}\n`;
  // Not exported: the tests' environment is what agent gets.
  await writeFile(
    launcher,
    text.replace("self=$0\n", () => `${settings}self=$0\n`),
  );
  return { launcher, remove: () => rm(folder, { recursive: true, force: true }) };
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`;
}
