import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "@devplat/testkit";
import type { Home } from "./agent-stand.ts";

/** Milliseconds between two looks at the status: an edit of a megabyte takes many of them. */
const LOOK_MS = 20;
/** Looks that have to be answered while a large file is being edited; one that is edited inline leaves time for one or two. */
const MIN_ANSWERS = 10;

/** A rule for the key `k` and the file of {@link largeYaml}. */
export const LARGE_RULE = "{name: large, key: k, target: {path: ~/large.yaml, format: yaml}}";

/** About a megabyte of YAML, with anchors, in which `token` has this value. */
export function largeYaml(token: string): string {
  const entries = Array.from(
    { length: 6500 },
    (_, index) =>
      `- name: cluster-${index}\n  cluster: {server: "https://host-${index}.example.org", <<: *common}\n` +
      `  certificate: abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz # of ${index}\n`,
  );
  return `common: &common {insecure: no}\nclusters:\n${entries.join("")}token: ${token}\n`;
}

/**
 * Changes the file of {@link LARGE_RULE} and waits until a daemon with a web UI at `url` has restored the value `token`. Asserts
 * that the daemon answers during this time, and that no other byte differs.
 */
export async function assertEditsLargeFile(
  place: Home,
  url: string,
  token: string,
  log: () => string,
): Promise<void> {
  await place.write("large.yaml", largeYaml("spoilt"));
  let answers = 0;
  const isDone = async (): Promise<boolean> => (await place.read("large.yaml")).includes(`token: ${token}\n`);
  await until(async () => {
    for (;;) {
      const answer = await fetch(`${url}/api/v1/status`);
      const { sync } = (await answer.json()) as { sync: { state: string } };
      if (await isDone()) return true;
      if (sync.state !== "running") return false;
      answers += 1;
      await sleep(LOOK_MS);
    }
  }, log);
  assert.equal(await place.read("large.yaml"), largeYaml(token));
  assert.ok(answers >= MIN_ANSWERS, `${answers} answers while the file was edited`);
}
