import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { quickFiles, testFiles } from "../files.ts";
import { LEFT_OUT, type LeftOut } from "./left-out.ts";

/** Folders with code that depends on the system, and whose tests can run as another one. */
const FOLDERS = [
  "apps/agent/src/agent-files/",
  "apps/agent/src/config/",
  "apps/agent/src/platform/",
  "apps/agent/src/secrets/",
  "apps/agent/src/sync/content/",
  "apps/agent/src/sync/edit/",
  "apps/agent/src/sync/target/",
  "packages/base/",
  "packages/cli/",
  "packages/config/",
  "packages/document-edit/",
  "packages/http-client/",
  "packages/secret-store/",
  "packages/ssh-protocol/",
];
/** A test that takes longer hangs; in milliseconds. */
const TEST_LIMIT_MS = 120_000;

export interface PlatformRun {
  /** Exit code of the tests. */
  readonly code: number;
  readonly leftOut: readonly LeftOut[];
  readonly output: string;
}

/**
 * Runs the tests in one process.
 *
 * @param parts parts of paths; with any given, only files that contain one of them
 */
export async function runAsPlatform(
  root: string,
  system: "win32" | "darwin",
  parts: readonly string[],
  show: "inherit" | "pipe",
): Promise<PlatformRun> {
  const inFolders = testFiles(root, ".test.ts", FOLDERS).filter((file) =>
    FOLDERS.some((folder) => file.startsWith(folder)),
  );
  const wanted = quickFiles(root, inFolders).filter(
    (file) => parts.length === 0 || parts.some((part) => file.includes(part)),
  );
  const leftOut = LEFT_OUT.filter(({ systems, file }) => systems.includes(system) && wanted.includes(file));
  const files = wanted.filter(
    (file) => !leftOut.some((each) => each.file === file && each.title === undefined),
  );
  // Without files, node:test would look for some.
  if (files.length === 0) return { code: 1, leftOut, output: "No test file has such a path" };
  const titles = leftOut.flatMap(({ title }) => (title === undefined ? [] : [title]));
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      `--import=${join(import.meta.dirname, "as-platform.ts")}`,
      "--test",
      "--test-isolation=none",
      "--test-force-exit",
      `--test-timeout=${TEST_LIMIT_MS}`,
      ...titles.map((title) => `--test-skip-pattern=/^${escaped(title)}$/`),
      "--test-reporter=dot",
      "--test-reporter-destination=stdout",
      ...files,
    ],
    { cwd: root, stdio: ["ignore", show, show], env: environment(system) },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code: code ?? 1, leftOut, output };
}

function escaped(text: string): string {
  return text.replaceAll(/[/\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

/** NODE_TEST_CONTEXT would make the child believe that it is a test file of this run. */
function environment(system: string): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _context, NODE_OPTIONS: _options, ...env } = process.env;
  return { ...env, TEST_PLATFORM: system };
}
