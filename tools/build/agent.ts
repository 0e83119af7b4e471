import { chmod, copyFile, mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { build, type BuildOptions, type Plugin } from "esbuild";
import { assetsInside } from "./assets-inside.ts";
import { narrow } from "./narrow.ts";
import { ROOT } from "./root.ts";

export const SOURCE = join(ROOT, "apps/agent/src");
const RUNTIME_MAJOR = 26;
/** Files that start a thread, with the code that the thread runs, in the folder of the file. */
export const THREADS = [
  { starter: "sync/edit/edit-thread.ts", code: "edit-worker.ts" },
  { starter: "key-thread/key-thread.ts", code: "key-worker.ts" },
] as const;
/** Code that few daemons load, with the file that loads it. In the large bundle it would cost each start 2 MB of memory. */
export const LATE_CODE = [{ loader: "telemetry/telemetry.ts", code: "running-export.ts" }] as const;

/**
 * Bundles the daemon. The launcher runs `agent.cjs`: it handles a suppressed login-check itself, and loads `main.cjs` for
 * everything else. Each thread runs a bundle of its own, such as `edit-worker.cjs`, and so does {@link LATE_CODE}.
 * @param folder is emptied first
 * @returns the path of the shell launcher for a Node 26 that is installed
 */
export async function buildAgent(folder: string): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const main = join(folder, "main.cjs");
  await build({
    ...COMMON,
    entryPoints: [join(SOURCE, "main.ts")],
    outfile: main,
    plugins: [
      assetsInside(),
      threads((bundle) => `require("node:path").join(__dirname, "${bundle}"), {`),
      lateCode((bundle) => `require(require("node:path").join(__dirname, "${bundle}"))`),
    ],
  });
  await narrow(main);
  for (const { entry, bundle } of separateBundles()) {
    const outfile = join(folder, bundle);
    await build({ ...COMMON, entryPoints: [entry], outfile });
    await narrow(outfile);
  }
  const entry = join(SOURCE, "login-check.cjs");
  const begin = { banner: { js: REFUSE_OLDER_RUNTIMES } };
  await build({
    ...COMMON,
    ...begin,
    entryPoints: [entry],
    outfile: join(folder, "agent.cjs"),
    plugins: [EXTERNAL_MAIN],
  });
  const launcher = join(folder, "agent");
  await copyFile(join(import.meta.dirname, "agent-launcher.sh"), launcher);
  await chmod(launcher, 0o755);
  return launcher;
}

/**
 * CommonJS: as an ES module it starts twice as slowly. Names stay as they are, because errors show those of classes.
 */
export const COMMON: BuildOptions = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: "node",
  format: "cjs",
  target: `node${RUNTIME_MAJOR}`,
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: "inline",
  logLevel: "error",
  // A module of the file itself is as near as a require.
  supported: { "dynamic-import": false },
  // jsonc-parser's main file requires by a name that no bundler sees.
  mainFields: ["module", "main"],
};

/** The bundle of the small entry does not include the large one. */
const EXTERNAL_MAIN: Plugin = {
  name: "external-main",
  setup: (bundle) => {
    bundle.onResolve({ filter: /^\.\/main\.ts$/ }, () => ({ path: "./main.cjs", external: true }));
  },
};

/** As in agent-launcher.sh. Compiled code is of use only under the flags that it was compiled with. */
export const ENGINE_FLAGS = ["--max-semi-space-size=1", "--optimize-for-size", "--no-opt", "--no-maglev"];

const REFUSE_OLDER_RUNTIMES = `if (parseInt(process.versions.node, 10) < ${RUNTIME_MAJOR}) {
  process.stderr.write("agent: needs Node ${RUNTIME_MAJOR} or newer, and this is " + process.version + "\\n");
  process.exit(1);
}`;

/** File name of the bundle for a thread or for late code. */
function bundleOf(code: string): string {
  return code.replace(/\.ts$/, ".cjs");
}

/** The bundles next to the large one, each with the file that it begins with. */
export function separateBundles(): { readonly entry: string; readonly bundle: string }[] {
  const files = [
    ...THREADS.map(({ starter, code }) => ({ next: starter, code })),
    ...LATE_CODE.map(({ loader, code }) => ({ next: loader, code })),
  ];
  return files.map(({ next, code }) => ({
    entry: join(SOURCE, dirname(next), code),
    bundle: bundleOf(code),
  }));
}

/** Loads late code from its bundle. @param load gives the text in place of `import(…)` */
export function lateCode(load: (bundle: string) => string): Plugin {
  return replaced(
    "late-code",
    LATE_CODE.map(({ loader, code }) => ({
      file: loader,
      sources: `import("./${code}")`,
      text: load(bundleOf(code)),
    })),
  );
}

/** Starts each thread from its bundle. @param start gives the text in place of `new URL(…), {` in `new Worker(…)` */
export function threads(start: (bundle: string) => string): Plugin {
  return replaced(
    "threads",
    THREADS.map(({ starter, code }) => ({
      file: starter,
      sources: `new URL("${code}", import.meta.url), {`,
      text: start(bundleOf(code)),
    })),
  );
}

/** Replaces a text in files, each of which must have it. */
function replaced(
  name: string,
  places: readonly { readonly file: string; readonly sources: string; readonly text: string }[],
): Plugin {
  return {
    name,
    setup: (bundle) => {
      for (const { file, sources, text } of places) {
        const filter = new RegExp(`${file.replace(/\./g, "\\.")}$`);
        bundle.onLoad({ filter }, async ({ path }) => {
          const source = await readFile(path, "utf8");
          if (!source.includes(sources))
            throw new Error(`${path}: does not load ${sources} in the way that is known`);
          return { contents: source.replace(sources, () => text), loader: "ts" };
        });
      }
    },
  };
}
