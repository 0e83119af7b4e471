import { resolve } from "node:path";

/** The repository's folder. Bundles name their modules by paths from here, wherever the build runs. */
export const ROOT = resolve(import.meta.dirname, "../..");
