import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { silentLogger } from "../logger.ts";
import { Watchdog } from "./watchdog.ts";

const PERIOD_MS = 3000;

describe("Watchdog", () => {
  it("sends a message three times in each period while there is no fault", (t) => {
    t.mock.timers.enable({ apis: ["setInterval"] });
    const alive = mock.fn();
    let fault: string | undefined;
    const status = mock.fn();
    const parts = {
      manager: { watchdogMs: PERIOD_MS, alive, status },
      fault: () => fault,
      logger: silentLogger,
    };
    const watchdog = new Watchdog(parts);
    t.mock.timers.tick(PERIOD_MS);
    assert.equal(alive.mock.callCount(), 4);
    fault = "sync: one turn takes 900 s";
    t.mock.timers.tick(2 * PERIOD_MS);
    assert.equal(alive.mock.callCount(), 4);
    assert.deepEqual(
      status.mock.calls.map(({ arguments: [text] }) => text),
      ["no progress: sync: one turn takes 900 s"],
    );
    fault = undefined;
    t.mock.timers.tick(PERIOD_MS);
    assert.equal(alive.mock.callCount(), 7);
    assert.equal(status.mock.calls.at(-1)?.arguments[0], "works again");
    assert.equal(status.mock.callCount(), 2);
    watchdog.stop();
    t.mock.timers.tick(PERIOD_MS);
    assert.equal(alive.mock.callCount(), 7);
  });

  it("sends nothing without a service manager that waits for it", (t) => {
    t.mock.timers.enable({ apis: ["setInterval"] });
    const alive = mock.fn();
    const manager = { watchdogMs: undefined, alive, status: () => undefined };
    const watchdog = new Watchdog({ manager, fault: () => undefined, logger: silentLogger });
    t.mock.timers.tick(PERIOD_MS);
    assert.equal(alive.mock.callCount(), 0);
    watchdog.stop();
  });
});
