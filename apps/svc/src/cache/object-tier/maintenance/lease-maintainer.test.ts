import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { repositoryId } from "../../../access/repository-id.ts";
import { LeaseMaintainer, type RenewedLease } from "./lease-maintainer.ts";

const ONE = repositoryId("org", "one");
const OTHER = repositoryId("org", "other");
const HOUR_MS = 3_600_000;

class TestLease implements RenewedLease {
  readonly fence: number;
  isHeld = true;

  constructor(fence: number) {
    this.fence = fence;
  }

  release(): Promise<void> {
    this.isHeld = false;
    return Promise.resolve();
  }
}

function testMaintainer() {
  const state = { time: 0, isTaken: false, written: 0 };
  const leases: TestLease[] = [];
  const maintainer = new LeaseMaintainer({
    hold: (name) => {
      assert.match(name, /^packs org\//);
      if (state.isTaken) return Promise.resolve(undefined);
      leases.push(new TestLease(leases.length + 1));
      return Promise.resolve(leases.at(-1));
    },
    nameOf: ({ key }) => `packs ${key}`,
    manifests: { known: () => ({ fence: state.written }) as never },
    clock: { monotonic: () => state.time },
  });
  return { state, leases, maintainer };
}

describe("LeaseMaintainer", () => {
  it("keeps a lease, and takes it again with a higher number after it was lost", async () => {
    const { maintainer, leases, state } = testMaintainer();
    assert.equal(await maintainer.mayMaintain(ONE), 1);
    assert.equal(await maintainer.mayMaintain(ONE), 1);
    leases[0]!.isHeld = false;
    state.isTaken = true;
    assert.equal(await maintainer.mayMaintain(ONE), undefined);
    state.isTaken = false;
    assert.equal(await maintainer.mayMaintain(ONE), 2);
  });

  it("takes a lease again if a manifest has a higher number than its lease", async () => {
    const { maintainer, leases, state } = testMaintainer();
    await maintainer.mayMaintain(ONE);
    state.written = 2;
    assert.equal(await maintainer.mayMaintain(ONE), 2);
    assert.equal(leases[0]?.isHeld, false);
    assert.equal(await maintainer.mayMaintain(ONE), 2);
  });

  it("releases leases that are not used any more, and all at the end", async () => {
    const { maintainer, leases, state } = testMaintainer();
    await maintainer.mayMaintain(ONE);
    state.time += HOUR_MS;
    await maintainer.mayMaintain(OTHER);
    assert.deepEqual(
      leases.map(({ isHeld }) => isHeld),
      [false, true],
    );
    await maintainer.close();
    assert.ok(leases.every(({ isHeld }) => !isHeld));
  });
});
