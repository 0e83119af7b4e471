import { join } from "node:path";
import { build, type Metafile, type Plugin } from "esbuild";
import { readFile } from "node:fs/promises";
import { LATE_ASSERT } from "../assert-module.ts";
import { assetsInside } from "../assets-inside.ts";
import { HTTP_PARTS } from "../http-module.ts";
import { LATE_EXPORTS_OF_PACKAGES } from "../late-exports.ts";
import { ROOT } from "../root.ts";
import { narrow } from "../narrow.ts";
import { THREAD_ENTRIES, THREAD_REFERENCES } from "../svc.ts";
import { UNDICI_PARTS } from "../undici-parts.ts";
import { bundleFirst, wrapBundle } from "./first-bundle.ts";
import { LATE_WASM_FLAGS } from "./late-wasm-flags.ts";
import { releaseVersion } from "./release-version.ts";
import { compiledCodes } from "./started-functions.ts";
import { BUNDLE, type ProgramBundle } from "./program-bundle.ts";

const SOURCE = join(ROOT, "apps/svc/src");

/** As in svc-launcher.sh, which says why. Those for WebAssembly are set later. */
const ENGINE_FLAGS = ["--max-semi-space-size=8"];

/**
 * Bundles the service for a single executable: one file for what runs first, one for the program, and one for each thread.
 *
 * @param folder exists
 */
export async function bundleSvc(folder: string, version: string): Promise<ProgramBundle> {
  const metafiles: Metafile[] = [];
  const assets: Record<string, string> = {};
  const make = async (entry: string, outfile: string): Promise<void> => {
    const { metafile } = await build({
      absWorkingDir: ROOT,
      bundle: true,
      platform: "node",
      format: "cjs",
      target: "node26",
      entryPoints: [entry],
      outfile,
      metafile: true,
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: "inline",
      logLevel: "error",
      external: ["pg-native"],
      // A module of the file itself is as near as a require.
      supported: { "dynamic-import": false },
      // The only other use is the default of an option that this program sets.
      define: { "import.meta.url": '"file:///"' },
      plugins: [
        HTTP_PARTS,
        LATE_ASSERT,
        LATE_EXPORTS_OF_PACKAGES,
        LATE_WASM_FLAGS,
        THREADS_INSIDE,
        UNDICI_PARTS,
        assetsInside(),
        releaseVersion(version),
      ],
    });
    await narrow(outfile);
    metafiles.push(metafile);
  };
  const program = join(folder, BUNDLE);
  await make(join(SOURCE, "main.ts"), program);
  await wrapBundle(program);
  assets[BUNDLE] = program;
  for (const [name, entry] of Object.entries(THREAD_ENTRIES)) {
    assets[`${name}.cjs`] = join(folder, `${name}.cjs`);
    await make(entry, join(folder, `${name}.cjs`));
  }
  const { main, metafile } = await bundleFirst(folder, { name: "svc", version });
  return {
    main,
    assets,
    compiled: compiledCodes("svc"),
    engineFlags: ENGINE_FLAGS,
    nodeFlags: ["--disable-warning=ExperimentalWarning", "--use-system-ca"],
    metafiles: [...metafiles, metafile],
  };
}

/**
 * Address of a module that runs a thread. A file in the executable has no path on disk, and the code that starts threads takes
 * addresses: so the module is its own address.
 */
function threadModule(name: string): string {
  const builtin = (module: string): string => `process.getBuiltinModule("node:${module}")`;
  const code =
    `const { createRequire } = ${builtin("module")};` +
    `const code = ${builtin("sea")}.getAsset("${name}.cjs", "utf8");` +
    `${builtin("vm")}.compileFunction(code, ["require", "module", "exports"], { filename: "${name}.cjs" })` +
    `(createRequire(process.execPath), { exports: {} }, {});`;
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

const THREADS_INSIDE: Plugin = {
  name: "threads-inside",
  setup: (bundle) => {
    bundle.onLoad({ filter: THREAD_REFERENCES.files }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replaceAll(THREAD_REFERENCES.reference, (_whole, name: string) => {
        if (!(name in THREAD_ENTRIES)) throw new Error(`${path}: no bundle is made of the thread ${name}`);
        return `new URL(${JSON.stringify(threadModule(name))})`;
      });
      return { contents, loader: "ts" };
    });
  },
};
