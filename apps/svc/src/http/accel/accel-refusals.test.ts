import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { describe, it } from "node:test";
import { Secret, createLogger } from "@devplat/base";
import { Metrics } from "../../telemetry/metrics.ts";
import { AccelRefusals } from "./accel-refusals.ts";
import { Accel } from "./accel.ts";
import { HandedFiles } from "./handed-files.ts";

const SECRET = "planted-accel-secret-of-more-than-32-characters";

describe("refused X-Svc-Accel headers", () => {
  const lines: string[] = [];
  const metrics = new Metrics({ version: "test", processMetrics: false });
  const logger = createLogger({ destination: { write: (line: string) => void lines.push(line) } });
  const files = new HandedFiles({
    storagePath: "/nowhere",
    folderName: "_accel",
    groupId: undefined,
    logger,
  });
  const refusals = new AccelRefusals({ metrics: metrics.accel, logger });
  const accel = new Accel({ secret: new Secret(SECRET), files, refusals, logger });
  const send = async (remoteAddress: string, given: string | undefined): Promise<void> => {
    const socket = { remoteAddress, localAddress: "10.0.0.2", destroyed: false };
    const headers = given === undefined ? {} : { "x-svc-accel": given };
    const request = { socket, headers } as unknown as IncomingMessage;
    assert.equal(await accel.handOver(request, { size: 10 }), undefined);
  };
  const counted = async (reason: string): Promise<number> => {
    const { values } = (await metrics.registry.getSingleMetric("svc_accel_refused_total")?.get()) ?? {
      values: [],
    };
    return values.find(({ labels }) => labels["reason"] === reason)?.value ?? -1;
  };

  it("are counted by reason, and each reason is logged once", async () => {
    assert.equal(await counted("secret"), 0);
    await send("127.0.0.1", undefined);
    await send("127.0.0.1", SECRET);
    assert.equal(lines.length, 0);
    for (const value of ["wrong", "", `${SECRET} `]) await send("10.0.0.1", value);
    for (const peer of ["10.0.0.1", "10.0.0.9"]) await send(peer, SECRET);
    assert.deepEqual([await counted("secret"), await counted("peer")], [3, 2]);
    assert.equal(lines.length, 2, lines.join(""));
    assert.match(lines[0] ?? "", /wrong value.*server\.accel_secret|10\.0\.0\.1.*wrong value/);
    assert.match(lines[1] ?? "", /not from a loopback address/);
    assert.ok(lines.every((line) => line.includes("10.0.0.1") && !line.includes(SECRET)));
  });
});
