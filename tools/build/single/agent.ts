import { join } from "node:path";
import { build, type BuildOptions, type Metafile } from "esbuild";
import { COMMON, ENGINE_FLAGS, SOURCE, lateCode, separateBundles, threads } from "../agent.ts";
import { assetsInside } from "../assets-inside.ts";
import { narrow } from "../narrow.ts";
import { bundleFirst, wrapBundle } from "./first-bundle.ts";
import { releaseVersion } from "./release-version.ts";
import { compiledCodes } from "./started-functions.ts";
import { BUNDLE, type ProgramBundle } from "./program-bundle.ts";

/**
 * Bundles the daemon for a single executable: one file for what runs first, one for the program, and one for each thread and for late
 * code.
 *
 * @param folder exists
 */
export async function bundleAgent(folder: string, version: string): Promise<ProgramBundle> {
  const metafiles: Metafile[] = [];
  const assets: Record<string, string> = {};
  const make = async (options: BuildOptions): Promise<void> => {
    const { metafile } = await build({ ...COMMON, ...options, metafile: true });
    metafiles.push(metafile ?? { inputs: {}, outputs: {} });
  };
  for (const { entry, bundle } of separateBundles()) {
    const outfile = join(folder, bundle);
    assets[bundle] = outfile;
    await make({ entryPoints: [entry], outfile });
    await narrow(outfile);
  }
  const program = join(folder, BUNDLE);
  assets[BUNDLE] = program;
  // A file in the executable has no path on disk: the thread gets its text.
  const start = (name: string): string => `require("node:sea").getAsset("${name}", "utf8"), { eval: true,`;
  const load = (name: string): string => `((module) => {
    const names = ["module", "exports", "require"];
    const text = require("node:sea").getAsset("${name}", "utf8");
    require("node:vm").compileFunction(text, names)(module, module.exports, require);
    return module.exports;
  })({ exports: {} })`;
  await make({
    entryPoints: [join(SOURCE, "main.ts")],
    outfile: program,
    plugins: [assetsInside(), threads(start), lateCode(load), releaseVersion(version)],
  });
  await narrow(program);
  await wrapBundle(program);
  const before = join(SOURCE, "login-check.cjs");
  const { main, metafile } = await bundleFirst(folder, { name: "agent", version, before });
  return {
    main,
    assets,
    compiled: compiledCodes("agent"),
    engineFlags: ENGINE_FLAGS,
    nodeFlags: ["--disable-warning=ExperimentalWarning"],
    metafiles: [...metafiles, metafile],
  };
}
