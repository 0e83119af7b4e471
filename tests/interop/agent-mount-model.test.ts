import { describe, it } from "node:test";
import { loopSeconds, startVault, testSeed } from "@devplat/testkit";
import { randomFrom } from "@devplat/testkit/random";
import { mountStand, untilText, VaultStandStore, type MountStand } from "./agent-mount-stand.ts";
import { WriteModel } from "./agent-mount/write-model.ts";

const TIMEOUT_MS = 1_800_000;
const SHARE = 0.025;
const FUSE = "read_write: true, layout: both, cache_ttl: 1s";

/** Random actions until the time is over. */
async function assertAgrees(stand: MountStand): Promise<void> {
  const model = new WriteModel(stand, randomFrom(testSeed()));
  // The mount comes before the sign-in.
  await untilText(stand.at("demo/registry.d/user"), "ada");
  const end = performance.now() + loopSeconds(SHARE) * 1000;
  try {
    while (performance.now() < end) await model.step();
    await model.end();
  } catch (error) {
    throw new Error(`seed ${testSeed()}, after ${JSON.stringify([...model.counts])}`, { cause: error });
  } finally {
    await stand.remove();
  }
}

describe("a random reader and writer of the mount", { timeout: TIMEOUT_MS }, () => {
  it("sees what a model in memory has, on the embedded store [agent 38.10]", async () => {
    await assertAgrees(await mountStand("agent-mount-model", FUSE));
  });

  it("sees the same on Vault [agent 38.10]", async () => {
    const vault = await startVault();
    try {
      await assertAgrees(await mountStand("agent-mount-model-vault", FUSE, "", new VaultStandStore(vault)));
    } finally {
      await vault.stop();
    }
  });
});
