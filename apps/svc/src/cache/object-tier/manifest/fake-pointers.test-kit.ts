import type { ManifestPointer, ManifestPointerStore } from "../../../storage/coordination-store.ts";
import type { FakeBehaviour } from "../fake-bucket.test-kit.ts";

/** A fake of the rows of manifests, in memory, for random schedules that no real database can follow. */
export class FakePointers {
  readonly #current = new Map<string, ManifestPointer>();
  /** Names that were current, oldest first. */
  readonly names: string[] = [];

  client({
    turn = () => Promise.resolve(),
    writeFault,
    readFault,
  }: FakeBehaviour = {}): ManifestPointerStore {
    const replace = (key: string, next: ManifestPointer, expected: number | undefined): boolean => {
      const current = this.#current.get(key);
      if (current?.generation !== expected || (current?.fence ?? 0) > next.fence) return false;
      this.#current.set(key, next);
      this.names.push(next.name);
      return true;
    };
    return {
      get: async (key) => {
        await turn();
        if (readFault?.() === true) throw new Error("fake: no response of the database");
        const pointer = this.#current.get(key);
        await turn();
        return pointer;
      },
      replace: async (key, next, expected) => {
        const fault = writeFault?.();
        await turn();
        if (fault === "refused") throw new Error("fake: the database is away");
        if (fault === "late") {
          void turn()
            .then(turn)
            .then(turn)
            .then(() => replace(key, next, expected))
            .catch(() => undefined);
          throw new Error("fake: no response of the database");
        }
        const isReplaced = replace(key, next, expected);
        await turn();
        if (fault === "lost") throw new Error("fake: no response of the database");
        return isReplaced;
      },
    };
  }
}
