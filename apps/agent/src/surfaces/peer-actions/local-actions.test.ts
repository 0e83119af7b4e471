import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret, type LogFields, type Logger } from "@devplat/base";
import type { Desktop } from "../../desktop/desktop.ts";
import type { DesktopOutcome } from "../../desktop/program.ts";
import type { PeerAction } from "./action.ts";
import { LocalActions } from "./local-actions.ts";

const BROWSE: PeerAction = { kind: "browse", url: "https://example.com/hunter2" };
const CLIPBOARD: PeerAction = { kind: "clipboard", text: new Secret("hunter2") };

function collect(): { lines: string[]; logger: Logger } {
  const lines: string[] = [];
  const note = (fields: LogFields, message: string): void =>
    void lines.push(JSON.stringify({ ...fields, message }));
  const logger: Logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
  return { lines, logger };
}

describe("LocalActions", () => {
  it("runs one action of a kind at a time; only another of that kind gets busy", async () => {
    const accessCheck = Promise.withResolvers<DesktopOutcome>();
    const desktop: Desktop = {
      open: () => accessCheck.promise,
      raise: async () => "done",
      copy: async () => "copied",
    };
    const actions = new LocalActions(desktop, collect().logger);
    const first = actions.perform(BROWSE, "api");
    assert.equal(await actions.perform(BROWSE, "peer socket"), "busy");
    assert.equal(await actions.perform(CLIPBOARD, "api"), "done");
    accessCheck.resolve("done");
    assert.equal(await first, "done");
    assert.equal(await actions.perform(BROWSE, "api"), "done");
  });

  it("a failed action makes room for the next, and its log line has no word of it", async () => {
    const { lines, logger } = collect();
    const desktop: Desktop = {
      open: () => Promise.reject(new Error("hunter2")),
      raise: async () => "failed",
      copy: async () => "no_program",
    };
    const actions = new LocalActions(desktop, logger);
    await assert.rejects(actions.perform(BROWSE, "api"));
    await assert.rejects(actions.perform(BROWSE, "api"), { message: "hunter2" });
    assert.equal(await actions.perform(CLIPBOARD, "api"), "no_program");
    assert.equal(
      await actions.perform({ kind: "notify", notification: { level: "info", title: "hunter2" } }, "api"),
      "failed",
    );
    assert.equal(lines.length, 2);
    assert.doesNotMatch(lines.join("\n"), /hunter2/);
  });
});
