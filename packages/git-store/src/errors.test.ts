import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { GIT_STORE_ERROR_CODES, GitStoreError } from "./errors.ts";

test("GitStoreError of a lock is worth a retry, of anything else it is final", () => {
  const retried = GIT_STORE_ERROR_CODES.filter((code) => new GitStoreError(code, "x").remedy === "retry");
  assert.deepEqual(retried, ["locked"]);
});

for (const file of ["errors.ts", "../README.md"]) {
  test(`the table of error codes in ${file} has every code once, and no other`, () => {
    const text = readFileSync(new URL(file, import.meta.url), "utf8");
    const rows = [...text.matchAll(/^(?: \* )?\| `([a-z_]+)` \|/gmu)].map((match) => match[1]!);
    assert.deepEqual(rows.toSorted(), [...GIT_STORE_ERROR_CODES].toSorted());
  });
}
