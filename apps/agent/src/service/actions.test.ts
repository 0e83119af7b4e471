import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Actions } from "./actions.ts";

describe("the actions of a service command", () => {
  it("are listed by a dry run as by a real one, which alone takes them", async () => {
    const taken: string[] = [];
    const work = async (dryRun: boolean): Promise<readonly string[]> => {
      const actions = new Actions({ dryRun });
      for (const name of ["stopped", "disabled"]) await actions.take(name, async () => void taken.push(name));
      return actions.texts;
    };
    const listed = await work(true);
    assert.deepEqual(taken, []);
    assert.deepEqual(await work(false), listed);
    assert.deepEqual(taken, listed);
  });

  it("end with the first that fails", async () => {
    const actions = new Actions({ dryRun: false });
    await assert.rejects(
      actions.take("started", async () => Promise.reject(new RangeError("it does not start"))),
      RangeError,
    );
  });
});
