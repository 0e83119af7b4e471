/**
 * `npm run test:mutate -- FILE … [--tests FILE …]`: changes the sources in small ways, one at a time, and runs their tests
 * each time: a change that no test notices (a survivor) is printed. The tests are the files next to each source with its name,
 * or the arguments of `--tests`. Works on a copy. Exit code 1 if something survived, and the wrong use is 2.
 *
 * The work is done by Stryker (docs/dependencies.md), installed on the first call into the folder for caches.
 */
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, homedir, tmpdir } from "node:os";
import { delimiter, dirname, join, relative, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
process.exitCode = main(process.argv.slice(2));

function main(args: readonly string[]): number {
  const split = args.includes("--tests") ? args.indexOf("--tests") : args.length;
  const sources = args.slice(0, split).map(fromRoot);
  const tests = args.slice(split + 1).map(fromRoot);
  const wrong = problemOf(sources, tests);
  if (wrong !== undefined) {
    process.stderr.write(`${wrong}\n`);
    return 2;
  }
  const stryker = install();
  const folder = mkdtempSync(join(tmpdir(), "devplat-mutate-"));
  try {
    const settings = join(folder, "stryker.json");
    const testFiles = tests.length > 0 ? tests : sources.map(testBeside);
    writeFileSync(settings, JSON.stringify(settingsFor(stryker, folder, sources, testFiles)));
    const program = join(stryker, "node_modules/@stryker-mutator/core/bin/stryker.js");
    // It runs the tests with the Node of the PATH.
    const path = [dirname(process.execPath), process.env["PATH"]].join(delimiter);
    const env = { ...process.env, PATH: path };
    const { status } = spawnSync(process.execPath, [program, "run", settings], {
      cwd: root,
      stdio: "inherit",
      env,
    });
    return status ?? 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function settingsFor(
  stryker: string,
  folder: string,
  sources: readonly string[],
  testFiles: readonly string[],
): object {
  return {
    testRunner: "tap",
    plugins: [join(stryker, "node_modules/@stryker-mutator/tap-runner/dist/src/index.js")],
    tap: {
      testFiles,
      nodeArgs: ["--disable-warning=ExperimentalWarning", "--test-reporter=tap", "{{testFile}}"],
      forceBail: false,
    },
    mutate: sources,
    coverageAnalysis: "perTest",
    concurrency: availableParallelism(),
    tempDirName: join(folder, "copies"),
    ignorePatterns: ["bench", "docs", "tools/mutate", "node_modules/.cache"],
    // It would read tsconfig.json with functions that TypeScript 7 does not have.
    tsconfigFile: "none.json",
    disableTypeChecks: false,
    reporters: ["clear-text"],
    clearTextReporter: { reportTests: false, logTests: false },
    thresholds: { high: 100, low: 100, break: 100 },
    warnings: { unknownOptions: false },
  };
}

function fromRoot(path: string): string {
  return relative(root, resolve(path));
}

/** `a/b.ts` is tested by `a/b.test.ts`. */
function testBeside(source: string): string {
  return source.replace(/\.ts$/, ".test.ts");
}

function problemOf(sources: readonly string[], tests: readonly string[]): string | undefined {
  if (sources.length === 0)
    return "Give the files to change: npm run test:mutate -- packages/base/src/retry.ts";
  for (const file of [...sources, ...tests]) {
    if (!existsSync(join(root, file))) return `${file} is not a file of this repository`;
  }
  if (tests.length > 0) return undefined;
  const bare = sources.find((source) => !existsSync(join(root, testBeside(source))));
  return bare === undefined ? undefined : `${bare} has no test next to it: name its tests with --tests`;
}

/** Installs what tools/mutate/package-lock.json names, once. Gives the folder. */
function install(): string {
  const lock = readFileSync(join(import.meta.dirname, "package-lock.json"));
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  const name = `stryker-${createHash("sha256").update(lock).digest("hex").slice(0, 12)}`;
  const folder = join(cache, "devplat-peers", name);
  const done = join(folder, "installed");
  if (existsSync(done)) return folder;
  process.stderr.write("Installing Stryker (once, some seconds) ...\n");
  mkdirSync(folder, { recursive: true });
  for (const file of ["package.json", "package-lock.json"])
    copyFileSync(join(import.meta.dirname, file), join(folder, file));
  const { status } = spawnSync(
    "npm",
    ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    {
      cwd: folder,
      stdio: ["ignore", 2, 2],
    },
  );
  if (status !== 0) throw new Error(`npm could not install Stryker in ${folder}: see above`);
  writeFileSync(done, "");
  return folder;
}
