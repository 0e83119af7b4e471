import assert from "node:assert/strict";
import { join } from "node:path";
import {
  clientPrograms,
  git,
  gitEnvironment,
  repositories,
  run,
  type ClientProgram,
  type Finished,
} from "@devplat/testkit";
import { HOST_TOKEN, remoteContent, withAccount, type Case, type Place, type Stage } from "./stand.ts";
import type { Row } from "./table.ts";

type Verb = "clone" | "shallow" | "fetch";

const HEADS = "+refs/heads/*:refs/remotes/origin/*";
const TAGS = "+refs/tags/*:refs/tags/*";
const MAIN = "+refs/heads/main:refs/remotes/origin/main";

interface Client {
  readonly client: string;
  /** Those that never ask for protocol v2 are passed through. */
  readonly second: Row["second"];
  /** Refs that its shallow clone brings: one branch, or all, with or without tags. */
  readonly shallow: readonly string[];
}

const CLIENTS: readonly Client[] = [
  { client: "isomorphic-git", second: "passthrough", shallow: [MAIN] },
  {
    client: "dulwich",
    second: "hit",
    shallow: [HEADS, TAGS],
  },
  { client: "pygit2", second: "passthrough", shallow: [HEADS, "+refs/tags/light:refs/tags/light"] },
  { client: "go-git", second: "passthrough", shallow: [MAIN] },
  { client: "JGit", second: "hit", shallow: [HEADS] },
];

/** Expected content for a client, by stock git from the code host. */
async function workOfStock(
  verb: Verb,
  url: string,
  folder: string,
  shallow: readonly string[],
): Promise<void> {
  if (verb === "clone") await git(["clone", "-q", "--no-checkout", url, folder]);
  else if (verb === "fetch") await git(["-C", folder, "fetch", "-q", "--force", url, HEADS, TAGS]);
  else {
    await git(["init", "-q", folder]);
    await git(["-C", folder, "fetch", "-q", "--no-tags", "--depth=1", url, ...shallow]);
  }
}

/** Branches, merges, lightweight and annotated tags. */
async function repository(bare: string): Promise<void> {
  await repositories.merges(bare);
  await tag(bare, "v1", "main~2");
  await git(["-C", bare, "tag", "light", "side"]);
}

async function tag(bare: string, name: string, commit: string): Promise<void> {
  const env = gitEnvironment({ GIT_COMMITTER_DATE: "1800000000 +0000" });
  await git(["-C", bare, "tag", "-a", "-m", name, name, commit], { env });
}

async function push(bare: string): Promise<void> {
  await repositories.append(bare, { commits: 3 });
  await git(["-C", bare, "branch", "later", "side"]);
  await repositories.append(bare, { branch: "later" });
}

/** The steps of every client; `stage` makes one of a verb. */
const ACTIONS: readonly {
  readonly does: string;
  readonly repository: Case["repository"];
  readonly steps: readonly { readonly verb: Verb; readonly change?: (bare: string) => Promise<void> }[];
  readonly account?: "foreign" | "minted";
}[] = [
  {
    does: "clone, then fetch after push",
    repository: { build: repository },
    steps: [{ verb: "clone" }, { verb: "fetch", change: push }],
  },
  {
    does: "clone with tags, also nested ones and ones of a tree and a blob; then fetch of a new one",
    repository: { build: (bare) => repositories.tags(bare) },
    steps: [{ verb: "clone" }, { verb: "fetch", change: (bare) => tag(bare, "v99", "main~3") }],
  },
  { does: "shallow clone", repository: { build: repository }, steps: [{ verb: "shallow" }] },
  ...(["foreign", "minted"] as const).map((account) => ({
    does: `clone and fetch of a private repository with a ${account === "foreign" ? "code host's" : "minted"} token`,
    repository: { build: repository, private: true },
    steps: [{ verb: "clone" }, { verb: "fetch", change: push }] as const,
    account,
  })),
];

export const PROGRAM_CASES: readonly Case[] = CLIENTS.flatMap(({ client, second, shallow }) =>
  ACTIONS.map(({ does, repository: built, steps, account }): Case => {
    // Minted once per case, for the repository that the first place names.
    let token: Promise<string> | undefined;
    const stageOf = ({ verb, change }: (typeof steps)[number]): Stage => ({
      ...(change === undefined ? {} : { change }),
      see: remoteContent,
      async act(place, stand) {
        if (place.way === "direct") {
          const url = account === undefined ? place.url : withAccount(place.url, HOST_TOKEN);
          await workOfStock(verb, url, place.folder, shallow);
          return;
        }
        const name = new URL(place.url).pathname.slice(1).replace(/\.git$/, "");
        if (account === "foreign") token = Promise.resolve(HOST_TOKEN);
        else if (account === "minted")
          token ??= stand.mint(name, "contents:read").then((minted) => minted.token);
        if (token !== undefined && verb === "clone" && place.way === "first") {
          const refused = await work(client, verb, { ...place, folder: `${place.folder}-refused` });
          assert.notEqual(refused.code, 0, "a clone without a credential");
        }
        const done = await work(client, verb, place, await token);
        assert.equal(done.code, 0, `${client} ${verb}: ${done.stderr}${done.stdout}`);
      },
    });
    return {
      row: { client, does, second },
      repository: built,
      stages: steps.map(stageOf),
    };
  }),
);

const ISOMORPHIC_GIT: ClientProgram = {
  command: process.execPath,
  args: ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "isomorphic-git.ts")],
};

function work(client: string, verb: Verb, { url, folder }: Place, token?: string): Promise<Finished> {
  const programs: Record<string, ClientProgram> = { "isomorphic-git": ISOMORPHIC_GIT, ...clientPrograms() };
  const { command, args } = programs[client] ?? assert.fail(`no program for ${client}`);
  const account = token === undefined ? {} : { CLIENT_USER: "x-access-token", CLIENT_PASSWORD: token };
  return run(command, [...args, verb, url, folder], { env: gitEnvironment(account) });
}
