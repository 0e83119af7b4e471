import type { SeedKind, StoredSeed } from "@devplat/git-mirror";

/** Key of each file in the manifest. */
const KEYS: Readonly<Record<SeedKind, string>> = {
  pack: "pack",
  idx: "idx",
  rev: "rev",
  graph: "commit_graph",
};
const ORDER: readonly SeedKind[] = ["pack", "idx", "rev", "graph"];

/**
 * The manifest of a seed, as JSON. A shell script can read it: each key is on a line of its own, in this order, and each of
 * `refs` and `tips` too. The value of a file is on the line of its key.
 */
export function encodeManifest(seed: StoredSeed): string {
  const text = (value: unknown): string => JSON.stringify(value);
  const files = ORDER.map((kind) => {
    const { size, sha256 } = seed.files[kind];
    const file = { name: `${seed.name}.${kind}`, size, sha256 };
    return `  "${KEYS[kind]}": ${text(kind === "pack" ? { ...file, objects: seed.objects } : file)},`;
  });
  return [
    "{",
    `  "object_format": ${text(seed.format)},`,
    `  "head": ${text(seed.headRef ?? null)},`,
    `  "made_at": ${text(new Date(seed.madeAt).toISOString())},`,
    ...files,
    '  "refs": {',
    seed.refs.map(({ name, oid }) => `    ${text(name)}: ${text(oid)}`).join(",\n"),
    "  },",
    '  "tips": [',
    seed.tips.map((oid) => `    ${text(oid)}`).join(",\n"),
    "  ]",
    "}",
    "",
  ].join("\n");
}
