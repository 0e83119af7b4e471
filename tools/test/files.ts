import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Where test files may lie, from the repository's root. */
const FOLDERS = ["apps", "packages", "tests", "tools", "bench"] as const;

/** Test files that run together in one process, or one by one. */
export interface Group {
  readonly name: string;
  readonly files: readonly string[];
  /** Whether each file gets a process of its own: cross-package tests with peers, which change process-wide state. */
  readonly isolated: boolean;
}

/**
 * All files that end in `suffix` (`.test.ts`), as sorted paths from the root.
 *
 * @param patterns plain parts of a path; with any given, only files that contain at least one of them
 */
export function testFiles(root: string, suffix: string, patterns: readonly string[]): string[] {
  return globSync(
    FOLDERS.map((folder) => `${folder}/**/*${suffix}`),
    { cwd: root, exclude: (name) => name === "node_modules" },
  )
    .filter((file) => patterns.length === 0 || patterns.some((pattern) => file.includes(pattern)))
    .toSorted();
}

/** Tests across programs and against peers; what is outside of them may still start a peer. */
const WITH_PEERS = /^tests\/(?:interop|testkit)\//;
/** The starters of the test kit, and readers, that need what `npm run setup:peers` installs. */
const STARTS_PEER =
  /\b(?:start(?:Vault|Postgres|Slapd|Sshd|Swtpm|Gitea|Desktop|VersityGateway|Minio)|createSoftHsm|launchChromium|schemathesisPython)\b|readers\.test-kit/;

/** Files whose tests take seconds each. */
const LONG = /\.long\.test\.ts$/;

/** Those of the files that need no peer and take no long time: what one runs before a commit. */
export function quickFiles(root: string, files: readonly string[]): string[] {
  return files.filter(
    (file) =>
      !WITH_PEERS.test(file) && !LONG.test(file) && !STARTS_PEER.test(readFileSync(join(root, file), "utf8")),
  );
}

/** One group per workspace (`packages/base`, `apps/svc`, …); tests/interop is the one that is isolated. */
export function groupFiles(files: readonly string[]): Group[] {
  const groups = Map.groupBy(files, (file) => file.split("/").slice(0, 2).join("/"));
  return [...groups].map(([name, members]) => ({
    name,
    files: members,
    isolated: name === "tests/interop",
  }));
}
