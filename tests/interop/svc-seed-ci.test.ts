import assert from "node:assert/strict";
import { copyFile, mkdir, readFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { git, gitEnvironment, gitSettings, repositories, run } from "@devplat/testkit";
import { basic, startStand, type Stand } from "./svc-git-stand.ts";
import { SCRIPT } from "./svc-seed-client-stand.ts";
import { makeSeed, type Manifest } from "./svc-seed-stand.ts";

const GUIDE = join(import.meta.dirname, "../../docs/svc/clone-by-seed.md");
/** Says that the seed was used. */
const BROUGHT = /^svc-seed: brought \d+ objects of the seed of \S+ \(\d+ MB\) into \S+\n$/;
const TOKEN = "ci-token";
const ALL_BRANCHES = "+refs/heads/*:refs/remotes/origin/*";
const ALL_TAGS = "+refs/tags/*:refs/tags/*";

/** A job in one of the systems. */
interface Job {
  readonly folder: string;
  /** The URL that the step fetches from. */
  readonly origin: string;
  readonly commit: string;
  /** Runs git in the folder. Fails the test with its error. */
  git(...args: readonly string[]): Promise<string>;
  /** Runs git, whose failure decides how the step goes on. */
  tryGit(...args: readonly string[]): Promise<boolean>;
}

interface System {
  /** Heading of its recipe. */
  readonly name: string;
  /** Variables that it sets, as far as the recipe uses them. */
  readonly variables: (job: Pick<Job, "folder">, origin: string) => NodeJS.ProcessEnv;
  readonly origin: (host: string) => string;
  /** Its check-out step, with the git commands in the order of its source. */
  readonly checkOut: (job: Job) => Promise<void>;
}

/** src/git-directory-helper.ts and src/git-source-provider.ts of actions/checkout, version 4, for a folder that exists. */
async function actionsCheckout(job: Job): Promise<void> {
  assert.equal(await job.git("config", "--local", "--get", "remote.origin.url"), job.origin, "it is removed");
  const head = ["rev-parse", "--symbolic-full-name", "--verify", "--quiet", "HEAD"];
  if ((await job.git(...head)).startsWith("refs/heads/")) await job.git("checkout", "--detach");
  const names = async (option: string): Promise<string[]> =>
    (await job.git("rev-parse", "--symbolic-full-name", option)).split("\n").filter((name) => name !== "");
  for (const name of await names("--branches")) {
    await job.git("branch", "--delete", "--force", name.replace("refs/heads/", ""));
  }
  for (const name of await names("--remotes=origin")) {
    if (name.endsWith("/HEAD")) continue;
    await job.git("branch", "--delete", "--force", "--remote", name.replace("refs/remotes/", ""));
  }
  await job.git("submodule", "status");
  await job.git("clean", "-ffdx");
  await job.git("reset", "--hard", "HEAD");
  await job.git("config", "--local", "gc.auto", "0");
  const options = ["-c", "protocol.version=2", "fetch", "--prune", "--no-recurse-submodules"];
  await job.git(...options, "origin", ALL_BRANCHES, ALL_TAGS);
  assert.match(await job.git("branch", "--list", "--remote", "origin/main"), /origin\/main/);
  assert.equal(await job.git("rev-parse", "refs/remotes/origin/main"), job.commit);
  await job.git("sparse-checkout", "disable");
  await job.git("checkout", "--progress", "--force", "-B", "main", "refs/remotes/origin/main");
  await job.git("log", "-1", "--format=%H");
}

/** shells/abstract.go of GitLab's runner, for the executor of Docker, which removes the configuration that it finds. */
async function gitlabRunner(job: Job): Promise<void> {
  const template = `${job.folder}.template`;
  await rm(join(job.folder, ".git", "config"), { force: true });
  await rm(join(job.folder, ".git", "hooks"), { recursive: true, force: true });
  await mkdir(template, { recursive: true });
  for (const setting of ["init.defaultBranch none", "fetch.recurseSubmodules false", "gc.autoDetach false"]) {
    await job.git("config", "-f", join(template, "config"), ...setting.split(" "));
  }
  await job.git("init", job.folder, "--template", template);
  if (!(await job.tryGit("remote", "add", "origin", job.origin))) {
    await job.git("remote", "set-url", "origin", job.origin);
  }
  const pipeline = "+refs/pipelines/7:refs/pipelines/7";
  const fetch = ["fetch", "origin", "--no-recurse-submodules", pipeline, ALL_BRANCHES, ALL_TAGS];
  await job.git("-c", "http.userAgent=gitlab-runner 17", ...fetch, "--prune", "--quiet");
  await job.git("-c", "submodule.recurse=false", "checkout", "-f", "-q", job.commit);
  await job.git("clean", "-ffdx");
}

/** GitSCM.java and CliGitAPIImpl.java of Jenkins' git plugins. Without a repository they would remove all files. */
async function jenkins(job: Job): Promise<void> {
  await job.git("rev-parse", "--resolve-git-dir", join(job.folder, ".git"));
  await job.git("config", "remote.origin.url", job.origin);
  await job.git("fetch", "--tags", "--force", "--progress", "--", job.origin, ALL_BRANCHES);
  assert.equal(await job.git("rev-parse", "refs/remotes/origin/main^{commit}"), job.commit);
  await job.tryGit("config", "core.sparsecheckout");
  await job.git("checkout", "-f", job.commit);
  await job.git("rev-list", "--no-walk", job.commit);
}

/** internal/job/checkout.go of Buildkite's agent. */
async function buildkite(job: Job): Promise<void> {
  await readdir(join(job.folder, ".git"));
  if ((await job.git("remote", "get-url", "origin")) !== job.origin) {
    await job.git("remote", "set-url", "origin", job.origin);
  }
  await job.git("clean", "-ffxdq");
  await job.git("fetch", "-v", "--prune", "--", "origin", job.commit);
  await job.git("checkout", "-f", job.commit);
  await job.git("clean", "-ffxdq");
}

const SYSTEMS: readonly System[] = [
  {
    name: "GitHub Actions",
    variables: ({ folder }) => ({ RUNNER_TEMP: `${folder}.temp`, GITHUB_REPOSITORY: "acme/widgets" }),
    origin: (host) => `${host}/acme/widgets`,
    checkOut: actionsCheckout,
  },
  {
    name: "GitLab CI",
    variables: ({ folder }, origin) => ({
      CI_PROJECT_DIR: folder,
      CI_PROJECT_PATH: "acme/widgets",
      CI_PROJECT_URL: origin.replace(".git", ""),
    }),
    origin: (host) => `${host}/acme/widgets.git`,
    checkOut: gitlabRunner,
  },
  {
    name: "Jenkins",
    variables: () => ({}),
    origin: (host) => `${host}/acme/widgets.git`,
    checkOut: jenkins,
  },
  {
    name: "Buildkite",
    variables: ({ folder }, origin) => ({ BUILDKITE_BUILD_CHECKOUT_PATH: folder, BUILDKITE_REPO: origin }),
    origin: (host) => `${host}/acme/widgets.git`,
    checkOut: buildkite,
  },
];

describe("recipes for CI in the guide", { timeout: 600_000 }, () => {
  let stand: Stand;
  let manifest: Manifest;
  let path = "";
  let folders = 0;
  before(async () => {
    stand = await startStand();
    stand.list("acme", "widgets");
    stand.codeHost.addUser("ci", TOKEN);
    ({ path } = await stand.codeHost.addRepository("acme", "widgets", {
      private: true,
      build: (dir) => repositories.linear(dir, { commits: 30 }),
    }));
    await git(["-C", path, "tag", "-a", "-m", "one", "v1", "main~3"]);
    await git(["-C", path, "branch", "side", "main~2"]);
    await git(["-C", path, "update-ref", "refs/pipelines/7", "main"]);
    manifest = await makeSeed(stand, "acme/widgets", { Authorization: basic(TOKEN) });
  });
  after(() => stand.stop());

  /** The command of a recipe, for this service and this script. */
  const commandOf = async (name: string, script: string): Promise<string> => {
    const guide = await readFile(GUIDE, "utf8");
    const [, section = ""] = guide.split(`\n### ${name}\n`);
    const [own = ""] = section.split(/\n###? /);
    const found = /sh ("?[\w$/]+\/svc-seed"?) ((?:\\\n|[^'\n])+)/.exec(own);
    assert.ok(found !== null, `the guide has no recipe for ${name}`);
    const [, place = "", args = ""] = found;
    const command = `sh ${place.startsWith('"') ? place : script} ${args}`;
    return command
      .replaceAll("https://git-proxy.example.com", stand.url)
      .replaceAll("https://github.com", stand.codeHost.url);
  };

  /** Steps fetch from the code host itself, with their own credential. */
  const ownCredential = (): NodeJS.ProcessEnv =>
    gitSettings({ [`http.${stand.codeHost.url}/.extraHeader`]: `Authorization: ${basic(TOKEN)}` });

  /** Runs the command of a recipe. @returns its messages */
  const runRecipe = async (system: System, folder: string, token: string): Promise<string> => {
    const variables = system.variables({ folder }, system.origin(stand.codeHost.url));
    await mkdir(`${folder}.temp`, { recursive: true });
    await copyFile(SCRIPT, join(`${folder}.temp`, "svc-seed"));
    const { code, stderr } = await run("sh", ["-c", await commandOf(system.name, SCRIPT)], {
      env: gitEnvironment({ ...variables, SVC_SEED_TOKEN: token }),
      cwd: folder,
      timeoutMs: 60_000,
    });
    assert.equal(code, 0, stderr);
    return stderr;
  };

  /** Runs the recipe and the step. @returns messages of the recipe, and packets of the step */
  const runJob = async (
    system: System,
    folder: string,
  ): Promise<{ readonly said: string; readonly packets: string }> => {
    const origin = system.origin(stand.codeHost.url);
    const said = await runRecipe(system, folder, TOKEN);
    let packets = "";
    const stepEnv = gitEnvironment({ ...ownCredential(), GIT_TRACE_PACKET: "1" });
    const step = (args: readonly string[]) =>
      run("git", args, { cwd: folder, env: stepEnv, timeoutMs: 60_000 });
    const job: Job = {
      folder,
      origin,
      commit: await git(["-C", path, "rev-parse", "main"]),
      git: async (...args) => {
        const { code, stdout, stderr } = await step(args);
        assert.equal(code, 0, `git ${args.join(" ")}: ${stderr}`);
        packets += stderr;
        return stdout.trim();
      },
      tryGit: async (...args) => (await step(args)).code === 0,
    };
    await system.checkOut(job);
    assert.equal(await job.git("rev-parse", "HEAD"), job.commit);
    assert.equal(await job.git("status", "--porcelain"), "");
    const fsck = await run("git", ["-C", folder, "fsck", "--full", "--strict"]);
    assert.equal(fsck.code, 0, fsck.stderr);
    return { said, packets };
  };

  /** Objects that came by a fetch. Few objects are stored one by one. */
  const fetched = async (folder: string): Promise<string[]> => {
    const objects = join(folder, ".git", "objects");
    const packs = (await readdir(join(objects, "pack"))).filter((name) => name.endsWith(".pack"));
    assert.deepEqual(packs, [manifest.pack.name], "only the seed is a pack");
    const found: string[] = [];
    for (const first of await readdir(objects)) {
      if (!/^[0-9a-f]{2}$/.test(first)) continue;
      for (const rest of await readdir(join(objects, first))) found.push(first + rest);
    }
    return found;
  };
  const newFolder = async (): Promise<string> => {
    const folder = stand.folder(`job-${folders++}`);
    await mkdir(folder, { recursive: true });
    return folder;
  };

  for (const system of SYSTEMS) {
    it(`${system.name}: the step fetches no object of the seed again [svc 12.11]`, async () => {
      const folder = await newFolder();
      const { said, packets } = await runJob(system, folder);
      assert.match(said, BROUGHT);
      assert.doesNotMatch(packets, /fetch> want/, "the seed is current");
      assert.deepEqual(await fetched(folder), []);
      assert.doesNotMatch(await readFile(join(folder, ".git", "config"), "utf8"), new RegExp(TOKEN));

      // The next job finds the folder, and the branch has moved.
      const seed = (await git(["-C", folder, "cat-file", "--batch-all-objects", "--batch-check"])).split(
        "\n",
      );
      const known = new Set(seed.map((line) => line.split(" ")[0]));
      await stand.codeHost.push("acme", "widgets", { commits: 2 });
      await git(["-C", path, "update-ref", "refs/pipelines/7", "main"]);
      const next = await runJob(system, folder);
      assert.match(next.said, /is a repository already/);
      assert.match(next.packets, /fetch> have/);
      const came = await fetched(folder);
      assert.ok(came.length > 0);
      assert.deepEqual(
        came.filter((oid) => known.has(oid)),
        [],
      );

      // A new folder, and a seed that is behind.
      const other = await newFolder();
      const behind = await runJob(system, other);
      assert.match(behind.said, BROUGHT);
      assert.match(behind.packets, /fetch> have/);
      assert.deepEqual(
        (await fetched(other)).filter((oid) => known.has(oid)),
        [],
      );
      // Each system begins with a current seed.
      const tip = Object.values(manifest.refs)[0] ?? "";
      await git(["-C", path, "update-ref", "refs/heads/main", tip]);
      await git(["-C", path, "update-ref", "refs/pipelines/7", tip]);
    });

    it(`${system.name}: without a seed the folder is as it was`, async () => {
      const folder = await newFolder();
      const said = await runRecipe(system, folder, "wrong");
      assert.match(said, /: the next step fetches without the seed/);
      assert.deepEqual(await readdir(folder), []);
    });
  }
});
