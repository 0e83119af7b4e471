import assert from "node:assert/strict";
import { join } from "node:path";
import { git, gitEnvironment, repositories, run } from "@devplat/testkit";
import { HOST_TOKEN, withAccount, type Case, type Place, type Stage } from "./stand.ts";
import { clone, inClone, inside, printed, stock, tipOf } from "./stock.ts";

const linear = (bare: string): Promise<void> => repositories.linear(bare, { commits: 30 });
const merges = (bare: string): Promise<void> => repositories.merges(bare);
const tags = (bare: string): Promise<void> => repositories.tags(bare);
const tagged = async (bare: string): Promise<void> => {
  await linear(bare);
  await git(["-C", bare, "tag", "v1", "main~4"]);
};
const push = (bare: string): Promise<void> => repositories.append(bare, { commits: 2 });

/** The branch goes back two commits and on from there. */
async function forcePush(bare: string): Promise<void> {
  await git(["-C", bare, "update-ref", "refs/heads/main", "main~2"]);
  await repositories.append(bare, { commits: 3, seed: 99 });
}

const dropSide = (bare: string): Promise<string> => git(["-C", bare, "branch", "-D", "side"]);

/** Names that need care in URLs, shells, pkt-lines and file names. */
const ODD = [
  "ünï/ço-dé",
  "a@b",
  "100%25",
  `q"uo'te`,
  "$x&y;z|<>",
  "emoji-😀",
  "-dash",
  "deep/".repeat(20) + "x",
];

async function oddRefs(bare: string): Promise<void> {
  await repositories.linear(bare, { commits: 10 });
  const lines = ODD.map((name, at) => `create refs/heads/${name} main~${at % 3}\n`);
  await git(["-C", bare, "update-ref", "--stdin"], { input: lines.join("") });
  for (const name of ODD) await repositories.append(bare, { branch: name });
}

const REFS = 30_000;

/** A bare clone of very many refs; the client must have probed for authentication and sent a chunked body. */
const manyRefs: Stage = {
  async act({ url, folder, way }) {
    const done = await run("git", ["clone", "-q", "--mirror", withAccount(url, HOST_TOKEN), folder], {
      env: gitEnvironment({ GIT_TRACE_CURL: "1", GIT_TRACE_CURL_NO_DATA: "1" }),
    });
    assert.equal(done.code, 0, done.stderr.slice(-2000));
    assert.match(done.stderr, /transfer-encoding: chunked/i, "a chunked body");
    assert.match(done.stderr, /content-length: 4\b/i, "a probe");
    if (way === "direct") assert.equal((await git(["-C", folder, "for-each-ref"])).split("\n").length, REFS);
  },
};

const FILTERS = [
  "blob:none",
  "blob:limit=1k",
  "tree:0",
  "tree:2",
  "object:type=commit",
  "combine:blob:limit=1k+tree:3",
  "sparse:oid=main:README.md",
] as const;

/** A partial clone, then a check-out and a walk through history, whose objects git fetches when it needs them. */
function filtered(filter: string): readonly Stage[] {
  return [
    clone("--no-checkout", `--filter=${filter}`),
    inClone(["checkout", "-q", "main"]),
    inClone(["diff", "--stat", "main~5", "main"]),
    // git asks for the rest by hundreds, and a fetch after that goes on from it.
    inClone(["fetch", "-q"], push),
  ];
}

/** Two repositories, one of which is a submodule of the other at `../name.git`. */
function submodules(): Case {
  let library = "";
  return stock(
    "clone with a submodule",
    (bare) => repositories.submodules(bare, { url: "../library.git", commit: library }),
    [
      {
        act: ({ url, folder }) => git(["clone", "-q", "--recurse-submodules", url, folder]),
        see: async ({ folder }) => {
          assert.equal(await git(["-C", join(folder, "library"), "rev-parse", "HEAD"]), library);
          const objects = ["cat-file", "--batch-all-objects", "--batch-check"];
          await git(["-C", join(folder, "library"), "fsck", "--full", "--strict"]);
          await git(["-C", folder, "fsck", "--full", "--strict"]);
          const both = [folder, join(folder, "library")].map((each) => git(["-C", each, ...objects]));
          return (await Promise.all(both)).join("\n");
        },
      },
    ],
    {
      async before(stand) {
        library = await tipOf(await stand.add("library", { build: linear }));
      },
    },
  );
}

const lsRemote = (...args: readonly string[]): Stage => ({
  act: () => Promise.resolve(),
  see: (place: Place) => printed(place, ["ls-remote", ...args, place.url]),
});

/** Everyday operations of people and machines with stock git. */
export const EVERYDAY_CASES: readonly Case[] = [
  stock("clone, then fetch after push", merges, [clone(), inClone(["fetch", "-q"], push)]),
  stock("fetch after force push", linear, [clone(), inClone(["fetch", "-q"], forcePush)]),
  stock("fetch --prune after a branch was deleted", merges, [
    clone(),
    inClone(["fetch", "-q", "--prune"], dropSide),
  ]),
  stock("clone of tags, then fetch --tags of a new one", tags, [
    clone(),
    inClone(["fetch", "-q", "--tags"], (bare) => git(["-C", bare, "tag", "-a", "-m", "new", "v99", "main"])),
  ]),
  stock("fetch of an id", linear, [
    { act: ({ folder }) => git(["init", "-q", folder]), see: () => Promise.resolve("") },
    {
      async act(place) {
        const id = (await git(["ls-remote", place.url, "HEAD"])).slice(0, 40);
        await inside(place, ["fetch", "-q", place.url, `${id}:refs/heads/x`]);
      },
    },
  ]),
  stock("clone --mirror, then remote update --prune", tags, [
    clone("--mirror"),
    inClone(["remote", "update", "--prune"], async (bare) => {
      await push(bare);
      await git(["-C", bare, "tag", "-d", "v2"]);
    }),
  ]),
  stock("clone --single-branch, then fetch", merges, [
    clone("--single-branch", "--branch=side"),
    inClone(["fetch", "-q"], (bare) => repositories.append(bare, { branch: "side" })),
  ]),
  stock("shallow clone, deepen by number, deepen relatively, unshallow", linear, [
    clone("--depth=1"),
    inClone(["fetch", "-q", "--depth=4"]),
    inClone(["fetch", "-q", "--deepen=3"]),
    inClone(["fetch", "-q", "--depth=2"], push),
    inClone(["fetch", "-q", "--unshallow"]),
  ]),
  stock("shallow clone by date", linear, [clone("--shallow-since=2001-01-01T00:00:00Z")]),
  stock("shallow clone without what a tag reaches, then unshallow", tagged, [
    clone("--shallow-exclude=v1"),
    inClone(["fetch", "-q", "--unshallow"]),
  ]),
  stock("shallow clone without what a tag reaches, beside tags of a tree and a blob, then unshallow", tags, [
    clone("--shallow-exclude=light-1"),
    inClone(["fetch", "-q", "--unshallow"]),
  ]),
  ...FILTERS.map((filter) => stock(`clone --filter=${filter} with lazy fetches`, linear, filtered(filter))),
  submodules(),
  {
    row: { client: "git", does: "ls-remote, whole and by pattern", second: "no fetch" },
    repository: { build: tags },
    stages: [lsRemote(), lsRemote("--heads"), lsRemote("--symref")],
  },
  stock("clone of an empty repository, then fetch of its first commits", (bare) => repositories.empty(bare), [
    clone(),
    inClone(["fetch", "-q"], async (bare, stand) => {
      await stand.host.addRepository("org", "seed", { build: linear });
      await git(["-C", bare, "fetch", "-q", `${stand.host.url}/org/seed`, "main:main"]);
    }),
  ]),
  stock("refs with odd names", oddRefs, [clone("--mirror"), inClone(["fetch", "-q"], push)]),
  {
    row: {
      client: "git",
      does: `clone --mirror of ${REFS} refs, private: authentication probe and chunked body`,
      second: "hit",
    },
    repository: { private: true, build: (bare) => repositories.manyRefs(bare, { refs: REFS }) },
    stages: [manyRefs],
  },
  stock("clone of a SHA-256 repository, then fetch after push", (bare) => repositories.sha256(bare), [
    clone(),
    inClone(["fetch", "-q"], push),
  ]),
  ...[0, 1].map((version): Case => ({
    row: { client: "git", does: `clone with protocol version ${version}, then fetch`, second: "passthrough" },
    repository: { build: merges },
    stages: [clone("-c", `protocol.version=${version}`), inClone(["fetch", "-q"], push)],
  })),
];
