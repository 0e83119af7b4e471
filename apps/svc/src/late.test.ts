import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Late } from "./late.ts";

describe("Late", () => {
  it("is made once for all who ask while it is made, and after", async () => {
    const gate = Promise.withResolvers<void>();
    let made = 0;
    const late = new Late(async () => {
      made++;
      await gate.promise;
      return { made };
    });
    assert.equal(made, 0);
    assert.equal(await late.ifMade(), undefined);
    assert.equal(made, 0);
    const asked = [late.get(), late.get()];
    gate.resolve();
    const [first, second] = await Promise.all(asked);
    assert.equal(first, second);
    assert.equal(await late.get(), first);
    assert.equal(await late.ifMade(), first);
    assert.equal(made, 1);
  });

  it("is waited for by who ends it", async () => {
    const gate = Promise.withResolvers<string>();
    const late = new Late(async () => gate.promise);
    const asked = late.get();
    const ended = late.ifMade();
    gate.resolve("part");
    assert.equal(await ended, "part");
    await asked;
  });

  it("that cannot be made fails everybody who asks, and not who ends it", async () => {
    const late = new Late(async () => {
      throw new Error("no such module");
    });
    await assert.rejects(late.get(), { message: "no such module" });
    await assert.rejects(late.get(), { message: "no such module" });
    assert.equal(await late.ifMade(), undefined);
  });
});
