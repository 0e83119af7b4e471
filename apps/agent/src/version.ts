import manifest from "../package.json" with { type: "json" };

/** The build's version. */
export const VERSION: string = manifest.version;
