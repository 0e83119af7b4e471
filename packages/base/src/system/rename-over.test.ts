import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renameOver } from "./rename-over.ts";

/** A rename that fails some times. */
function failing(times: number, code: string): { move: () => Promise<void>; calls: () => number } {
  let calls = 0;
  const move = async (): Promise<void> => {
    if (++calls <= times) throw Object.assign(new Error(code), { code });
  };
  return { move, calls: () => calls };
}

describe("renameOver", () => {
  it("on Windows tries again while another program has the file open", async () => {
    for (const code of ["EPERM", "EACCES", "EBUSY"]) {
      const { move, calls } = failing(2, code);
      await renameOver("a", "b", "win32", move);
      assert.equal(calls(), 3);
    }
  });

  it("gives up at last, with the error of the system", async () => {
    const { move, calls } = failing(100, "EPERM");
    await assert.rejects(renameOver("a", "b", "win32", move), { code: "EPERM" });
    assert.equal(calls(), 8);
  });

  it("fails immediately for other errors and on other systems", async () => {
    for (const [code, platform] of [
      ["ENOENT", "win32"],
      ["EPERM", "linux"],
    ] as const) {
      const { move, calls } = failing(1, code);
      await assert.rejects(renameOver("a", "b", platform, move), { code });
      assert.equal(calls(), 1);
    }
  });
});
