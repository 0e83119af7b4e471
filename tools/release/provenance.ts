import type { FileSum } from "./sums.ts";
import type { Source } from "./source.ts";

/** Parts of a statement on how a release was made. */
export interface ProvenanceParts {
  readonly source: Source;
  readonly version: string;
  readonly files: readonly FileSum[];
  /** Node's packages, by platform. */
  readonly runtimes: readonly {
    readonly package: string;
    readonly version: string;
    readonly integrity: string;
  }[];
  /** Programs that made the files, with their versions. */
  readonly tools: Readonly<Record<string, string>>;
}

/** An in-toto statement with the predicate SLSA Provenance v1: which commit and which tools gave which files. */
export function provenance({ source, version, files, runtimes, tools }: ProvenanceParts): string {
  const statement = {
    _type: "https://in-toto.io/Statement/v1",
    subject: files.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "urn:npm-run-release:v1",
        externalParameters: { version },
        internalParameters: { sourceDateEpoch: source.epoch, changedFiles: source.isChanged },
        resolvedDependencies: [
          { name: "source", digest: { gitCommit: source.commit } },
          ...runtimes.map((each) => ({
            name: each.package,
            uri: `pkg:npm/${each.package}@${each.version}`,
            digest: { sha512: Buffer.from(each.integrity.replace("sha512-", ""), "base64").toString("hex") },
          })),
        ],
      },
      runDetails: {
        builder: { id: "urn:npm-run-release", version: tools },
        metadata: { startedOn: new Date(source.epoch * 1000).toISOString() },
      },
    },
  };
  return `${JSON.stringify(statement, undefined, 2)}\n`;
}
