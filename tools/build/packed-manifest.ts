/** Members that the `package.json` of a published package has in this repository. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly keywords: readonly string[];
  readonly license: string;
  readonly type: string;
  readonly engines: Readonly<Record<string, string>>;
  /** Entries that do something when they are loaded, such as those of threads. */
  readonly sideEffects: false | readonly string[];
  /** Paths of sources, by entry. */
  readonly exports: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** The `package.json` of the package that people install: its entries are built, and it has no dependencies. */
export function packedManifest(manifest: Manifest): object {
  const { name, version, description, keywords, license, type, engines, sideEffects, exports } = manifest;
  const entries = Object.entries(exports).map(
    ([entry, source]) => [entry, { types: typesPath(source), default: codePath(entry) }] as const,
  );
  const entryOf = new Map(Object.entries(exports).map(([entry, source]) => [source, entry]));
  return {
    name,
    version,
    description,
    keywords,
    license,
    type,
    engines,
    sideEffects: sideEffects === false ? false : sideEffects.map((path) => codePath(entryOf.get(path) ?? "")),
    exports: { ...Object.fromEntries(entries), "./package.json": "./package.json" },
  };
}

/** Name of an entry of `exports`, as its file has it. */
export function entryName(entry: string): string {
  return entry === "." ? "index" : entry.replace("./", "");
}

function codePath(entry: string): string {
  return `./dist/${entryName(entry)}.js`;
}

/** Path of the types of a source. */
export function typesPath(source: string): string {
  return source.replace(/^\.\/src\//, "./dist/types/").replace(/\.ts$/, ".d.ts");
}
