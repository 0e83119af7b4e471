import manifest from "../package.json" with { type: "json" };

/** The program's version, from its package.json. */
export function programVersion(): string {
  return manifest.version;
}
