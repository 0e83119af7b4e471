import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, it } from "node:test";
import { until } from "@devplat/testkit";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import { ProcessLimits } from "./process-limits.ts";

const CHECK_MS = 15_000;

describe("the limits of ssh processes", () => {
  const children: ChildProcess[] = [];
  afterEach(async () => {
    for (const child of children.splice(0)) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });

  /** A process that has done something and waits. */
  async function processAfter(script: string): Promise<number> {
    const child = spawn(
      "python3",
      ["-c", `${script}\nprint("ready", flush=True)\nimport time\ntime.sleep(600)`],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    children.push(child);
    await once(child.stdout, "data");
    return child.pid ?? 0;
  }

  it("tell memory and descriptors beyond the limits within 15 s, and nothing below", async () => {
    const clock = new HandClock();
    const limits = new ProcessLimits(clock);
    const reasons = new Map<string, string[]>();
    const watch = async (name: string, script: string): Promise<() => void> => {
      const own: string[] = [];
      reasons.set(name, own);
      return limits.add(await processAfter(script), (reason) => own.push(reason));
    };
    await watch("small", "held = [open('/dev/null') for _ in range(240)]; memory = b'x' * 80_000_000");
    const endLarge = await watch("large", "memory = b'x' * 140_000_000");
    await watch("open", "held = [open('/dev/null') for _ in range(260)]");
    clock.advance(CHECK_MS - 1);
    assert.deepEqual([...reasons.values()], [[], [], []]);
    clock.advance(1);
    await until(() => reasons.get("open")?.length === 1);
    assert.deepEqual(Object.fromEntries(reasons), {
      small: [],
      large: ["ssh took more than 128 MB of memory"],
      open: ["ssh opened more than 256 descriptors"],
    });
    endLarge();
    clock.advance(CHECK_MS);
    await until(() => reasons.get("open")?.length === 2);
    assert.equal(reasons.get("large")?.length, 1);
  });
});
