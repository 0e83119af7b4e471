/** Members that the `package.json` of a published package has in this repository. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly keywords: readonly string[];
  readonly license: string;
  readonly type: string;
  readonly engines: Readonly<Record<string, string>>;
  /** Modules that do something when they are loaded, such as those of threads. */
  readonly sideEffects: false | readonly string[];
  /** Paths of sources, by entry. */
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The `package.json` of the package that people install: its entries are compiled, and it has no dependencies. */
export function packedManifest(manifest: Manifest): object {
  const { name, version, description, keywords, license, type, engines, sideEffects, exports } = manifest;
  const entries = Object.entries(exports).map(([entry, source]) => {
    const compiled = compiledPath(source);
    return [entry, { types: compiled.replace(/\.js$/, ".d.ts"), default: compiled }] as const;
  });
  return {
    name,
    version,
    description,
    keywords,
    license,
    type,
    engines,
    sideEffects: sideEffects === false ? false : sideEffects.map(compiledPath),
    exports: { ...Object.fromEntries(entries), "./package.json": "./package.json" },
  };
}

/** Path of the code that is made of a source. */
export function compiledPath(source: string): string {
  return source.replace(/^\.\/src\//, "./dist/").replace(/\.ts$/, ".js");
}
