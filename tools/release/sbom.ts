import { createHash } from "node:crypto";
import type { BundledPackage } from "./bundled-packages.ts";

/** Parts of a list of components. */
export interface SbomParts {
  readonly name: string;
  readonly version: string;
  readonly epoch: number;
  readonly packages: readonly BundledPackage[];
  /** Versions of Node and of the libraries in it, by name: `process.versions`. */
  readonly runtime: Readonly<Record<string, string | undefined>>;
  /** Versions of Node in the files for other platforms, if they differ. Its libraries there are not known. */
  readonly otherNodes: readonly string[];
  /** Libraries of the system that come with the program. */
  readonly systemLibraries?: readonly SystemLibrary[];
}

export interface SystemLibrary {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
}

/** Entries of `process.versions` that are numbers of interfaces, and no software. */
const INTERFACES: ReadonlySet<string> = new Set(["node", "modules", "napi", "unicode", "cldr", "tz"]);

/** Software bill of materials of a program in the format CycloneDX 1.6. Equal parts give equal text. */
export function sbom(parts: SbomParts): string {
  const { name, version, epoch, packages, runtime, otherNodes, systemLibraries = [] } = parts;
  const node = runtime["node"] ?? "";
  const libraries = Object.entries(runtime)
    .filter(([library]) => !INTERFACES.has(library))
    .map(([library, libraryVersion = ""]) => ({
      type: "library",
      "bom-ref": `node/${library}@${libraryVersion}`,
      name: library,
      version: libraryVersion,
    }));
  const bundled = packages.map((each) => ({
    type: "library",
    "bom-ref": purl(each.name, each.version),
    name: each.name,
    version: each.version,
    licenses: [{ expression: each.license }],
    purl: purl(each.name, each.version),
  }));
  const copied = systemLibraries.map((each) => ({
    type: "library",
    "bom-ref": `system/${each.name}@${each.version}`,
    name: each.name,
    version: each.version,
    licenses: [{ expression: each.license }],
  }));
  const self = `${name}@${version}`;
  const nodes = [node, ...otherNodes].map((each) => `node@${each}`);
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(epoch * 1000).toISOString(),
      component: { type: "application", "bom-ref": self, name, version, licenses: [{ expression: "MIT" }] },
    },
    components: [
      ...bundled,
      { ...nodeComponent(node), components: libraries },
      ...otherNodes.map(nodeComponent),
      ...copied,
    ],
    dependencies: [
      { ref: self, dependsOn: [...[...bundled, ...copied].map((each) => each["bom-ref"]), ...nodes] },
      ...[...bundled, ...copied].map((each) => ({ ref: each["bom-ref"] })),
      { ref: `node@${node}`, dependsOn: libraries.map((each) => each["bom-ref"]) },
      ...otherNodes.map((other) => ({ ref: `node@${other}` })),
    ],
  };
  const digest = createHash("sha256").update(JSON.stringify(document)).digest("hex");
  return `${JSON.stringify({ serialNumber: `urn:uuid:${uuidOf(digest)}`, ...document }, undefined, 2)}\n`;
}

function nodeComponent(version: string) {
  return {
    type: "platform",
    "bom-ref": `node@${version}`,
    name: "node",
    version,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    licenses: [{ expression: "MIT" }],
  };
}

function purl(name: string, version: string): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** A UUID of version 8 from a hash. */
function uuidOf(digest: string): string {
  return [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `8${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join("-");
}
