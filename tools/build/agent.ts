import { chmod, copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type BuildOptions, type Plugin } from "esbuild";

const SOURCE = resolve(import.meta.dirname, "../../apps/agent/src");
const RUNTIME_MAJOR = 26;
/** Files that start a thread, with the code that the thread runs, in the folder of the file. */
const THREADS = [
  { starter: "sync/edit/edit-thread.ts", code: "edit-worker.ts" },
  { starter: "key-thread/key-thread.ts", code: "key-worker.ts" },
] as const;

/** Files that a build has made. */
export interface AgentRelease {
  /** Shell launcher for a Node 26 that is installed. */
  readonly launcher: string;
  /** Everything in one file, Node included; undefined unless it was asked for. */
  readonly executable: string | undefined;
}

/**
 * Bundles the daemon. The launcher runs `agent.cjs`: it handles a suppressed login-check itself, and loads `main.cjs` for
 * everything else. Each thread runs a bundle of its own, such as `edit-worker.cjs`.
 * @param folder is emptied first
 * @param options `executable`: also a single file with Node in it, about 120 MB
 */
export async function buildAgent(
  folder: string,
  { executable = false }: { readonly executable?: boolean } = {},
): Promise<AgentRelease> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const main = join(folder, "main.cjs");
  await build({
    ...COMMON,
    entryPoints: [join(SOURCE, "main.ts")],
    outfile: main,
    plugins: [assetsInside(), threads((bundle) => `require("node:path").join(__dirname, "${bundle}"), {`)],
  });
  await narrow(main);
  for (const { starter, code } of THREADS) {
    const entryPoints = [join(SOURCE, dirname(starter), code)];
    await build({ ...COMMON, entryPoints, outfile: join(folder, bundleOf(code)) });
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
  if (!executable) return { launcher, executable: undefined };
  return { launcher, executable: await singleFile(entry, folder) };
}

/**
 * CommonJS: as an ES module it starts twice as slowly. Names stay as they are, because errors show those of classes.
 */
const COMMON: BuildOptions = {
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
const ENGINE_FLAGS = ["--max-semi-space-size=1", "--optimize-for-size", "--no-opt", "--no-maglev"];

const REFUSE_OLDER_RUNTIMES = `if (parseInt(process.versions.node, 10) < ${RUNTIME_MAJOR}) {
  process.stderr.write("agent: needs Node ${RUNTIME_MAJOR} or newer, and this is " + process.version + "\\n");
  process.exit(1);
}`;

/** Files that pages serve, as data URLs in place of `new URL(…, import.meta.url)`: a bundle has no folder of its own. */
function assetsInside(): Plugin {
  const reference = /new URL\((?:"([^"]+)", import\.meta\.url|import\.meta\.resolve\("([^"]+)"\))\)/g;
  return {
    name: "assets-inside",
    setup: (bundle) => {
      bundle.onLoad({ filter: /(?:web-kit\/src\/assets|web\/pages\/layout)\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        const files = new Map<string, string>();
        for (const [whole, beside, packaged] of text.matchAll(reference)) {
          const from = pathToFileURL(path);
          const file =
            beside === undefined
              ? createRequire(from).resolve(packaged ?? "")
              : fileURLToPath(new URL(beside, from));
          files.set(whole, (await readFile(file)).toString("base64"));
        }
        const contents = text.replace(
          reference,
          (whole) => `new URL("data:;base64,${files.get(whole) ?? ""}")`,
        );
        return { contents, loader: "ts" };
      });
    },
  };
}

/** File name of the bundle for a thread. */
function bundleOf(code: string): string {
  return code.replace(/\.ts$/, ".cjs");
}

/** Starts each thread from its bundle. @param start gives the text in place of `new URL(…), {` in `new Worker(…)` */
function threads(start: (bundle: string) => string): Plugin {
  return {
    name: "threads",
    setup: (bundle) => {
      for (const { starter, code } of THREADS) {
        const sources = `new URL("${code}", import.meta.url), {`;
        const filter = new RegExp(`${starter.replace(/\./g, "\\.")}$`);
        bundle.onLoad({ filter }, async ({ path }) => {
          const text = await readFile(path, "utf8");
          if (!text.includes(sources)) throw new Error(`${path}: starts no thread in the way that is known`);
          return { contents: text.replace(sources, () => start(bundleOf(code))), loader: "ts" };
        });
      }
    },
  };
}

/**
 * Writes characters beyond Latin-1 as escapes: one alone makes V8 keep the whole text twice as wide, for as long as the daemon
 * runs. esbuild escapes them everywhere but in regular expressions and in tagged templates, where `html` reads the escapes.
 */
async function narrow(file: string): Promise<void> {
  const text = await readFile(file, "utf8");
  await writeFile(
    file,
    text.replace(/[\u0100-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}

/** Node's single executable application, with the code compiled ahead. */
async function singleFile(entry: string, folder: string): Promise<string> {
  const bundle = join(folder, "single.cjs");
  const config = join(folder, "single.json");
  const output = join(folder, `agent-${process.platform}-${process.arch}`);
  // A file in the executable has no path on disk: the thread gets its text.
  const start = (name: string): string => `require("node:sea").getAsset("${name}", "utf8"), { eval: true,`;
  await build({
    ...COMMON,
    entryPoints: [entry],
    outfile: bundle,
    plugins: [assetsInside(), threads(start)],
  });
  await narrow(bundle);
  await writeFile(
    config,
    JSON.stringify({
      main: basename(bundle),
      output: basename(output),
      assets: Object.fromEntries(THREADS.map(({ code }) => [bundleOf(code), bundleOf(code)])),
      useCodeCache: true,
      disableExperimentalSEAWarning: true,
      execArgv: ["--disable-warning=ExperimentalWarning", ...ENGINE_FLAGS],
    }),
  );
  await promisify(execFile)(process.execPath, [...ENGINE_FLAGS, "--build-sea", config], {
    cwd: dirname(config),
  });
  await chmod(output, 0o755);
  await rm(bundle);
  await rm(config);
  return output;
}
