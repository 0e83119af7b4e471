import type { Metafile } from "esbuild";
import type { SingleFileParts } from "./single-file.ts";

/** Asset with the text of a program, which `first.ts` runs. */
export const BUNDLE = "program.cjs";

/** A program as bundles, for the single executables of all platforms. */
export interface ProgramBundle extends Omit<SingleFileParts, "node" | "isOwnPlatform"> {
  /** Which files each bundle was made of. */
  readonly metafiles: readonly Metafile[];
}
