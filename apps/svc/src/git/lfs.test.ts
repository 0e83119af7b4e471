import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { lfsOperation } from "./lfs.ts";

describe("what an LFS request does", () => {
  const OID = "a".repeat(64);
  const rows: [method: string, path: string, operation: string | undefined][] = [
    ["POST", "objects/batch", "batch"],
    ["GET", "objects/batch", undefined],
    ["GET", "locks?path=a", "read"],
    ["POST", "locks", "write"],
    ["POST", "locks/verify", "write"],
    ["POST", "locks/12/unlock", "write"],
    ["DELETE", "locks/12", undefined],
    ["GET", `objects/${OID}`, "read"],
    ["PUT", `objects/${OID}/4`, "write"],
    ["DELETE", `objects/${OID}`, undefined],
    ["POST", "verify", "write"],
    ["POST", `objects/${OID}/verify`, "write"],
    ["GET", "objects/../x", undefined],
    ["POST", "objects/batch/", undefined],
    ["GET", "unknown", undefined],
  ];
  for (const [method, path, operation] of rows) {
    it(`${method} info/lfs/${path.replace(OID, "{oid}")} is ${operation ?? "not known"}`, () => {
      assert.equal(lfsOperation(method, `/acme/widgets.git/info/lfs/${path}`), operation);
    });
  }
});
