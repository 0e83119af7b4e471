import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SeedFigures } from "@devplat/git-mirror";
import { repositoryId } from "../../access/repository-id.ts";
import type { RefSnapshots } from "../../access/ref-snapshots.ts";
import { CachedRepository } from "../cached-repository.ts";
import { SeedLooks } from "./seed-looks.ts";

const OLD: SeedFigures = { madeAt: 1, bytes: 10 };
const NEW: SeedFigures = { madeAt: 2, bytes: 20 };

function repositoryOf(name: string): CachedRepository {
  return new CachedRepository(repositoryId("org", name), {} as RefSnapshots);
}

describe("SeedLooks", () => {
  it("reads again after 30 s, or when seeds were made or removed here", async () => {
    const looks = new SeedLooks();
    const repository = repositoryOf("r");
    let reads = 0;
    const read = async (): Promise<SeedFigures> => (reads++, OLD);
    await looks.look(repository, 1000, read);
    await looks.look(repository, 30_999, read);
    assert.deepEqual([reads, repository.seed], [1, OLD]);
    await looks.look(repositoryOf("other"), 30_999, read);
    assert.equal(reads, 2, "each repository has its own time");
    await looks.look(repository, 31_000, read);
    assert.equal(reads, 3);
    repository.seedChanges++;
    await looks.look(repository, 31_001, async () => NEW);
    assert.equal(repository.seed, NEW);
    repository.seedsRemoved();
    assert.equal(repository.seed, undefined);
    await looks.look(repository, 31_002, read);
    assert.deepEqual([reads, repository.seed], [4, OLD]);
  });

  it("shares a look that is running, but not one that began before a change", async () => {
    const looks = new SeedLooks();
    const repository = repositoryOf("r");
    const first = Promise.withResolvers<SeedFigures>();
    let reads = 0;
    const read = async (): Promise<SeedFigures> => (reads++, await first.promise);
    const running = [looks.look(repository, 0, read), looks.look(repository, 0, read)];
    assert.equal(reads, 1);
    repository.seedChanges++;
    await looks.look(repository, 0, async () => NEW);
    first.resolve(OLD);
    await Promise.all(running);
    assert.equal(repository.seed, NEW);
  });

  it("reads again after a look that failed", async () => {
    const looks = new SeedLooks();
    const repository = repositoryOf("r");
    await assert.rejects(
      looks.look(repository, 0, () => Promise.reject(new Error("EIO"))),
      /EIO/,
    );
    await looks.look(repository, 0, async () => NEW);
    assert.equal(repository.seed, NEW);
  });
});
