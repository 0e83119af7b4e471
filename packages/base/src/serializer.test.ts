import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Serializer } from "./serializer.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("Serializer", () => {
  it("runs one action after another and gives the result of each", async () => {
    const serializer = new Serializer();
    const log: string[] = [];
    const gate = Promise.withResolvers<void>();
    const first = serializer.run(async () => {
      log.push("first begins");
      await gate.promise;
      log.push("first ends");
      return 1;
    });
    const second = serializer.run(() => {
      log.push("second");
      return 2;
    });
    await turn();
    assert.deepEqual(log, ["first begins"]);
    gate.resolve();
    assert.deepEqual(await Promise.all([first, second]), [1, 2]);
    assert.deepEqual(log, ["first begins", "first ends", "second"]);
  });

  it("a failure reaches its own caller and does not stop the next action", async () => {
    const serializer = new Serializer();
    const failing = serializer.run(() => Promise.reject(new Error("broken")));
    const throwing = serializer.run(() => {
      throw new Error("thrown");
    });
    const next = serializer.run(() => "done");
    await assert.rejects(failing, /broken/);
    await assert.rejects(throwing, /thrown/);
    assert.equal(await next, "done");
  });

  it("settled waits for all actions so far, and does not reject", async () => {
    const serializer = new Serializer();
    await serializer.settled();
    let ended = false;
    const failing = serializer.run(async () => {
      await turn();
      ended = true;
      throw new Error("broken");
    });
    const rejected = assert.rejects(failing, /broken/);
    await serializer.settled();
    assert.equal(ended, true);
    await rejected;
  });
});
