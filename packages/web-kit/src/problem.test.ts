import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PROBLEM_MEDIA_TYPE, problemDocument, type ProblemTypes } from "./problem.ts";

const TYPES = {
  gone: { status: 410, title: "It is no longer there.", hint: "Make another one." },
  busy: { status: 503, title: "Something else is running." },
} as const satisfies ProblemTypes;

describe("problem document", () => {
  it("has the members of RFC 9457 and its own media type", () => {
    assert.equal(PROBLEM_MEDIA_TYPE, "application/problem+json");
    assert.deepEqual(problemDocument(TYPES, { code: "busy", detail: "Cycle 7 is running." }), {
      type: "/api/openapi.json#/components/x-problem-types/busy",
      title: "Something else is running.",
      status: 503,
      detail: "Cycle 7 is running.",
      code: "busy",
    });
  });

  it("has the hint of its code, unless the occurrence has its own hint", () => {
    const detail = "Thing 1 was removed.";
    assert.equal(problemDocument(TYPES, { code: "gone", detail }).hint, "Make another one.");
    assert.equal(problemDocument(TYPES, { code: "gone", detail, hint: "Wait." }).hint, "Wait.");
  });

  it("includes extension members", () => {
    const { message, status } = problemDocument(TYPES, { code: "gone", detail: "d" }, { message: "d" });
    assert.deepEqual([message, status], ["d", 410]);
  });
});
