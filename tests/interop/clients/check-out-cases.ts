import assert from "node:assert/strict";
import { git, repositories } from "@devplat/testkit";
import type { Case, Stage } from "./stand.ts";
import { inside, stock, tipOf } from "./stock.ts";

/** Large enough that a whole check-out and a commit's difference cannot be taken for each other. */
const BLOB_BYTES = 500_000;

const project = (bare: string): Promise<void> => repositories.linear(bare, { commits: 60, files: 20 });
const push = (bare: string): Promise<void> => repositories.append(bare, { commits: 2 });

/** `actions/checkout` with its default depth: the id that the event names, by one fetch and no `ls-refs`. */
function actionsCheckout(job: string, change?: (bare: string) => Promise<void>): Stage {
  let sha = "";
  return {
    async change(bare) {
      await change?.(bare);
      sha = await tipOf(bare);
    },
    // A runner starts with an empty folder each time.
    async act({ url, folder }) {
      const at = (...args: readonly string[]): Promise<string> => git(["-C", `${folder}${job}`, ...args]);
      await git(["init", "-q", `${folder}${job}`]);
      await at("remote", "add", "origin", url);
      await at("config", "--local", "gc.auto", "0");
      await at(
        "-c",
        "protocol.version=2",
        "fetch",
        "--no-tags",
        "--prune",
        "--no-recurse-submodules",
        "--depth=1",
        "origin",
        `+${sha}:refs/remotes/origin/main`,
      );
      await at("checkout", "--progress", "--force", "-B", "main", "refs/remotes/origin/main");
    },
    see: async ({ folder }) => {
      const fsck = await git(["-C", `${folder}${job}`, "fsck", "--full", "--strict", "--no-progress"]);
      const objects = ["cat-file", "--batch-all-objects", "--batch-check"];
      return `${fsck}\n${await git(["-C", `${folder}${job}`, ...objects])}`;
    },
  };
}

/** GitLab's runner, which keeps its folder between jobs (`GIT_STRATEGY=fetch`, `GIT_DEPTH=20`). */
function gitlabRunner(pipeline: number, change?: (bare: string) => Promise<void>): Stage {
  let sha = "";
  return {
    async change(bare) {
      await change?.(bare);
      sha = await tipOf(bare);
    },
    async act(place) {
      await git(["init", "-q", place.folder]);
      const known = await inside(place, ["remote"]);
      await inside(place, ["remote", known === "" ? "add" : "set-url", "origin", place.url]);
      await inside(place, [
        "-c",
        "http.userAgent=gitlab-runner 17.0.0 linux/amd64",
        "fetch",
        "origin",
        "--no-recurse-submodules",
        `+${sha}:refs/pipelines/${pipeline}`,
        "+refs/heads/main:refs/remotes/origin/main",
        "--depth",
        "20",
        "--prune",
        "--quiet",
        "--no-tags",
      ]);
      await inside(place, ["checkout", "-f", "-q", sha]);
    },
  };
}

/** Jenkins' git plugin, which keeps its workspace too. */
function jenkins(change?: (bare: string) => Promise<void>): Stage {
  let sha = "";
  return {
    async change(bare) {
      await change?.(bare);
      sha = await tipOf(bare);
    },
    async act(place) {
      await git(["init", "-q", place.folder]);
      const refs = "+refs/heads/*:refs/remotes/origin/*";
      await inside(place, ["fetch", "--tags", "--force", "--progress", "--", place.url, refs]);
      await inside(place, ["config", "remote.origin.url", place.url]);
      await inside(place, ["checkout", "-f", sha]);
    },
  };
}

/** The check-out sequences of three CI systems, as their logs show them. */
export const CHECK_OUT_CASES: readonly Case[] = [
  stock("actions/checkout, depth 1 by id without ls-refs, then again after a push", project, [
    actionsCheckout(""),
    actionsCheckout("-2", push),
  ]),
  stock(
    "actions/checkout of a second id, which costs the code host only what changed",
    (bare) => repositories.bigBlobs(bare, { blobs: 2, bytes: BLOB_BYTES }),
    [actionsCheckout(""), cheap(actionsCheckout("-2", push))],
  ),
  stock("GitLab runner, depth 20 with two refspecs, then again after a push", project, [
    gitlabRunner(1),
    gitlabRunner(2, push),
  ]),
  stock(
    "Jenkins, --tags --force with every branch, then again after a push with a tag",
    (bare) => repositories.tags(bare),
    [
      jenkins(),
      jenkins(async (bare) => {
        await push(bare);
        await git(["-C", bare, "tag", "built", "main"]);
      }),
    ],
  ),
];

/** A step whose first time sends no more from the code host than a fraction of a blob. */
function cheap(stage: Stage): Stage {
  return {
    ...stage,
    async act(place, stand) {
      const before = stand.host.calls.length;
      await stage.act(place, stand);
      if (place.way !== "first") return;
      const fetched = stand.host.calls.slice(before).filter(({ command }) => command === "fetch");
      const bytes = fetched.reduce((sum, { bytesOut }) => sum + bytesOut, 0);
      assert.ok(bytes > 0 && bytes < BLOB_BYTES / 10, `${bytes} bytes from the code host`);
    },
  };
}
