import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Config } from "../config/schema.ts";
import { SurfaceGroup, type Surface, type SurfaceStatus } from "./surface.ts";

const calls: string[] = [];
const surface = (name: string, status: SurfaceStatus = {}, fault?: Error): Surface => ({
  start: async () => {
    if (fault !== undefined) throw fault;
    calls.push(`start ${name}`);
  },
  reconcile: async () => void calls.push(`reconcile ${name}`),
  status: () => status,
  stop: async () => void calls.push(`stop ${name}`),
});

function groupOf(...surfaces: readonly Surface[]): SurfaceGroup {
  const group = new SurfaceGroup();
  for (const each of surfaces) group.add(each);
  return group;
}

describe("a group of surfaces", () => {
  it("starts, reconciles and stops all of them in order, and joins their status", async () => {
    calls.length = 0;
    const api = { socket: "/run/api.sock", present: true };
    const group = groupOf(surface("web"), surface("api", { api }));
    await group.start();
    await group.reconcile({} as Config);
    await group.stop();
    await group.stop();
    const steps = ["start web", "start api", "reconcile web", "reconcile api", "stop web", "stop api"];
    assert.deepEqual(calls, steps);
    assert.deepEqual(group.status(), { api });
  });

  it("stops the surfaces that have started when the next one cannot", async () => {
    calls.length = 0;
    const fault = new Error("the socket is in use");
    const group = groupOf(surface("web"), surface("api", {}, fault), surface("peer"));
    await assert.rejects(group.start(), fault);
    assert.deepEqual(calls, ["start web", "stop web"]);
  });
});
