import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Ability, ProbeResult, StoreAbilities } from "@devplat/object-store";
import { stateOf } from "./probed-store.ts";

describe("stateOf", () => {
  const abilities = (
    conditions: boolean,
    result: ProbeResult,
    ability: Ability,
    missing: readonly string[] = [],
  ): StoreAbilities => ({
    rows: [
      { ability: "put", result: "yes", permission: undefined, reason: undefined },
      { ability, result, permission: missing[0], reason: result === "failed" ? "it is away" : undefined },
    ],
    usable: true,
    conditions,
    missingPermissions: missing,
  });
  const reasonOf = (given: StoreAbilities, hasDatabase = false): string => {
    const state = stateOf(given, hasDatabase, {});
    return state.kind === "unusable" ? state.reason : state.kind;
  };

  it("uses a store with conditions, also without conditions on deletes", () => {
    assert.equal(reasonOf(abilities(true, "no", "delete with If-Match")), "usable");
  });

  it("does not use one that ignores conditions, and names them and Postgres", () => {
    const reason = reasonOf(abilities(false, "no", "concurrent puts with If-Match"));
    assert.match(reason, /concurrent puts with If-Match.*common Postgres/);
  });

  it("uses one that ignores conditions with a common database", () => {
    assert.equal(reasonOf(abilities(false, "no", "put with If-Match"), true), "usable");
    assert.match(reasonOf(abilities(false, "no", "multipart upload"), true), /multipart upload$/);
    assert.equal(reasonOf(abilities(false, "failed", "put with If-Match"), true), "it is away");
  });

  it("names missing permissions and faults of the store before that", () => {
    const denied = abilities(false, "denied", "multipart upload", ["s3:AbortMultipartUpload"]);
    assert.match(reasonOf(denied), /permissions s3:AbortMultipartUpload$/);
    assert.equal(reasonOf(abilities(false, "failed", "multipart upload")), "it is away");
  });
});
