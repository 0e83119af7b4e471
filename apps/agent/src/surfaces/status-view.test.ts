import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DaemonView } from "../status.ts";
import { MemoryRemotes } from "./forwards/memory-remotes.test-kit.ts";
import { StatusView } from "./status-view.ts";

describe("StatusView", () => {
  it("syncNow hands on the rule that was asked for", () => {
    const asked: (string | undefined)[] = [];
    const daemon = {
      syncNow: (rule?: string) => {
        asked.push(rule);
        return { job: "cycle-1", done: new Promise<never>(() => undefined) };
      },
    } as unknown as DaemonView;
    const view = new StatusView(daemon, { status: () => ({}) }, new MemoryRemotes(), []);
    view.syncNow("npm");
    view.syncNow();
    assert.deepEqual(asked, ["npm", undefined]);
  });
});
