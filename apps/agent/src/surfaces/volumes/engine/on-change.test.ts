import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseReaction } from "./on-change.ts";

describe("the label daemon.on-change", () => {
  it("is restart, a signal or a command", () => {
    assert.deepEqual(parseReaction("restart"), { kind: "restart" });
    for (const text of ["signal:HUP", "signal:SIGHUP"])
      assert.deepEqual(parseReaction(text), { kind: "signal", signal: "HUP" });
    assert.deepEqual(parseReaction("signal:RTMIN+3"), { kind: "signal", signal: "RTMIN+3" });
    assert.deepEqual(parseReaction("exec:nginx -s reload"), { kind: "exec", command: "nginx -s reload" });
  });

  it("is refused in any other form", () => {
    for (const text of [
      "",
      "Restart",
      "restart ",
      "signal:",
      "signal:hup",
      "signal:HUP&x=1",
      "signal:9",
      "exec:",
      "exec: ",
      "kill",
    ]) {
      assert.equal(parseReaction(text), undefined, text);
    }
  });
});
