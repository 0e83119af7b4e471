import { chmod, copyFile, mkdir, readFile, rm } from "node:fs/promises";
import { createRequire, isBuiltin } from "node:module";
import { basename, dirname, join } from "node:path";
import { build, type Metafile, type Plugin } from "esbuild";
import { LATE_ASSERT } from "./assert-module.ts";
import { HTTP_PARTS } from "./http-module.ts";
import { LATE_EXPORTS_OF_PACKAGES } from "./late-exports.ts";
import { inputRecorder } from "./record-inputs.ts";
import { ROOT } from "./root.ts";
import { UNDICI_PARTS } from "./undici-parts.ts";

const SOURCE = join(ROOT, "apps/svc/src");
const THREADS = join(ROOT, "packages/git-mirror/src/threads");
const RUNTIME_MAJOR = 26;

/** Modules that threads run, by name. */
export const THREAD_ENTRIES = {
  "index-thread": join(THREADS, "index-thread.ts"),
  "job-worker": join(THREADS, "job-worker.ts"),
  "send-thread": join(SOURCE, "http/send-file/send-thread.ts"),
  "digest-worker": join(SOURCE, "cache/object-tier/slices/digest-worker.ts"),
} as const;

/** Program and threads, each in its own file. Shared code is in files next to them, and rarely used code is loaded late. */
const ENTRIES = { main: join(SOURCE, "main.ts"), ...THREAD_ENTRIES } as const;

/** Files that name the modules of threads, and how they do it. */
export const THREAD_REFERENCES = {
  files: /(git-mirror\/src\/threads|http\/send-file|object-tier\/slices)\/entries\.ts$/,
  reference: /new URL\("([\w-]+)\.ts", import\.meta\.url\)/g,
} as const;

/** Files that the service serves, with the names by which the code reads them from its own folder. */
const ASSETS = {
  "svc.css": join(SOURCE, "admin-ui/common/svc.css"),
  "mark.svg": join(SOURCE, "admin-ui/common/mark.svg"),
  "svc-seed.sh": join(SOURCE, "seed-client/svc-seed.sh"),
  "kit.css": join(ROOT, "packages/web-kit/src/kit.css"),
} as const;

/**
 * Bundles the service into a folder that needs Node 26 and nothing else.
 *
 * @param folder is emptied first
 * @returns the path of the launcher
 */
export async function buildSvc(folder: string): Promise<string> {
  return (await bundleFolder(folder)).launcher;
}

/** As {@link buildSvc}, with the list of files that the bundles were made of. */
export async function bundleFolder(folder: string): Promise<{ launcher: string; metafile: Metafile }> {
  await rm(folder, { recursive: true, force: true });
  const lib = join(folder, "lib");
  await mkdir(lib, { recursive: true });
  const { metafile } = await build({
    bundle: true,
    metafile: true,
    platform: "node",
    // Threads, and parts that are loaded when first needed, share code: CommonJS would hold it once for each.
    format: "esm",
    splitting: true,
    target: `node${RUNTIME_MAJOR}`,
    entryPoints: ENTRIES,
    outdir: lib,
    chunkNames: "[name]-[hash]",
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "inline",
    logLevel: "error",
    // Packages in CommonJS ask for Node's own modules this way.
    banner: {
      js: `import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);`,
    },
    external: ["pg-native"],
    plugins: [
      HTTP_PARTS,
      LATE_ASSERT,
      LATE_EXPORTS_OF_PACKAGES,
      EXTERNAL_THREADS,
      LATE_PACKAGES,
      // Behind it: a late import gets all of the package.
      UNDICI_PARTS,
      externalAssets(lib),
    ],
  });
  for (const [name, source] of Object.entries(ASSETS)) {
    await mkdir(dirname(join(lib, name)), { recursive: true });
    await copyFile(source, join(lib, name));
  }
  // The program reads its version there.
  await copyFile(join(ROOT, "apps/svc/package.json"), join(folder, "package.json"));
  const launcher = join(folder, "svc");
  await copyFile(join(import.meta.dirname, "svc-launcher.sh"), launcher);
  await chmod(launcher, 0o755);
  return { launcher, metafile };
}

/** `new URL("….ts", import.meta.url)` of a thread names its bundle instead. */
const EXTERNAL_THREADS: Plugin = {
  name: "external-threads",
  setup: (bundle) => {
    bundle.onLoad({ filter: THREAD_REFERENCES.files }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replaceAll(THREAD_REFERENCES.reference, (_whole, name: string) => {
        if (!(name in ENTRIES)) throw new Error(`${path}: no bundle is made of the thread ${name}`);
        return `new URL("${name}.js", import.meta.url)`;
      });
      return { contents, loader: "ts" };
    });
  },
};

/**
 * A package in CommonJS that is loaded late has no named exports in a bundle of ES modules: `await import("undici")` would
 * give nothing but `default`. Between the two goes a module that names what the package exports.
 */
const LATE_PACKAGES: Plugin = {
  name: "late-packages",
  setup: (bundle) => {
    bundle.onResolve({ filter: /^[@\w]/ }, ({ kind, path, resolveDir }) => {
      const ours = isBuiltin(path) || path.startsWith("@devplat/");
      if (kind !== "dynamic-import" || ours) return undefined;
      return { path, namespace: "late-packages", pluginData: resolveDir };
    });
    bundle.onLoad({ filter: /./, namespace: "late-packages" }, async ({ path, pluginData }) => {
      const resolveDir = String(pluginData);
      const file = createRequire(join(resolveDir, "here.js")).resolve(path);
      const names = Object.keys((await import(file)) as object).filter((name) =>
        /^[a-z_$][\w$]*$/i.test(name),
      );
      const named = names.filter((name) => name !== "default").join(", ");
      return { contents: `export { ${named} } from ${JSON.stringify(path)};`, resolveDir };
    });
  },
};

/** Scripts of other packages that pages load are next to the bundles. */
function externalAssets(lib: string): Plugin {
  return {
    name: "external-assets",
    setup: (bundle) => {
      const recordInput = inputRecorder(bundle);
      bundle.onLoad({ filter: /web-kit\/src\/assets\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        const copies: Promise<void>[] = [];
        const contents = text.replaceAll(
          /new URL\(import\.meta\.resolve\("([^"]+)"\)\)/g,
          (_whole, packaged: string) => {
            const file = createRequire(path).resolve(packaged);
            recordInput(file);
            copies.push(copyFile(file, join(lib, basename(file))));
            return `new URL("${basename(file)}", import.meta.url)`;
          },
        );
        await Promise.all(copies);
        return { contents, loader: "ts" };
      });
    },
  };
}
