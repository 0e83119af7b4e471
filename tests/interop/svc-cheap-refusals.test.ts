import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { encodePktLine } from "@devplat/git-protocol";
import { startCodeHost, startSvc, type CodeHost, type Svc } from "@devplat/testkit";
import { command } from "./svc-git-stand.ts";

/** `want` lines of one body: 60 MB inflated, 183 kB on the wire. */
const WANTS = 1_200_000;
/** Requests that are sent one after the other at the same time. */
const LOOPS = 2;
const ATTACK_MS = 3000;
/** One that no other process disturbs is enough. */
const ROUNDS = 4;
const HEALTH_INTERVAL_MS = 20;
/** Milliseconds of `/healthz` at the 90th percentile while it lasts. */
const HEALTH_P90_MS = 50;
const MAX_RSS_MB = 300;

/** A fetch of as many equal wants. */
function fetchOf(count: number): Buffer {
  const empty = command("fetch", ["thin-pack", "ofs-delta"]);
  const want = encodePktLine(`want ${"1234567890".repeat(4)}\n`);
  const wants = Buffer.alloc(want.length * count, want);
  return Buffer.concat([empty.subarray(0, -4), wants, empty.subarray(-4)]);
}

function residentMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return (Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024) / 1e6;
}

/** Sends a request and reads all of its answer. @returns its status; 0: the connection broke */
async function send(
  svc: Svc,
  path: string,
  options: { readonly agent: Agent; readonly from?: string; readonly body?: Buffer },
): Promise<number> {
  const { agent, from, body } = options;
  return await new Promise((resolve) => {
    const outgoing = request(
      svc.url + path,
      {
        agent,
        ...(from === undefined ? {} : { localAddress: from }),
        method: body === undefined ? "GET" : "POST",
        headers:
          body === undefined
            ? {}
            : {
                "Content-Type": "application/x-git-upload-pack-request",
                "Content-Encoding": "gzip",
                "Content-Length": body.length,
                "Git-Protocol": "version=2",
              },
      },
      (response) => {
        response.on("error", () => undefined);
        response.once("close", () => resolve(response.statusCode ?? 0));
        response.resume();
      },
    );
    outgoing.on("error", () => resolve(0));
    outgoing.end(body);
  });
}

describe("fetches of a caller that the code host refuses", () => {
  let codeHost: CodeHost;
  const small = gzipSync(fetchOf(1));
  const attack = gzipSync(fetchOf(WANTS), { level: 9 });
  before(async () => {
    codeHost = await startCodeHost();
    await codeHost.addRepository("org", "private", { private: true });
  });
  after(() => codeHost.stop());

  for (const addresses of [1, 20]) {
    it(`1.2 million wants, ${addresses} address(es): others are served, memory stays low [svc 1.20]`, async (t) => {
      const svc = await startSvc({ codeHost });
      try {
        await svc.addCachedRepository("org", "private");
        const statuses = new Map<number, number>();
        let peakMb = 0;
        const tried: string[] = [];
        let isQuick = false;
        for (let round = 0; round < ROUNDS && !isQuick; round++) {
          // The same requests, but small: what this machine, with all else that it does, makes of them.
          const usual = await measure(svc, addresses, small, statuses);
          const attacked = await measure(svc, addresses, attack, statuses);
          isQuick = attacked.p90 < Math.max(HEALTH_P90_MS, 3 * usual.p90);
          peakMb = Math.max(peakMb, attacked.peakMb);
          tried.push(`p90 ${attacked.p90.toFixed(1)} ms (with small bodies ${usual.p90.toFixed(1)} ms)`);
        }
        t.diagnostic(`${tried.join(", ")}; ${peakMb.toFixed(0)} MB; ${JSON.stringify([...statuses])}`);
        // 429: a limit on questions to the code host is there as well.
        assert.deepEqual(
          [...statuses.keys()].filter((status) => status !== 401 && status !== 429),
          [],
        );
        assert.ok((statuses.get(401) ?? 0) > 0, "the refusal is the code host's");
        assert.ok(peakMb < MAX_RSS_MB, `resident: ${peakMb} MB`);
        assert.ok(isQuick, `/healthz: ${tried.join(", ")}`);
      } finally {
        await svc.stop();
      }
    });
  }
});

interface Measured {
  /** Milliseconds of `/healthz` at the 90th percentile. */
  readonly p90: number;
  /** Largest resident set of the service. */
  readonly peakMb: number;
}

/** Posts the body in loops, each time from the next address, and asks for `/healthz` by the clock. */
async function measure(
  svc: Svc,
  addresses: number,
  body: Buffer,
  statuses: Map<number, number>,
): Promise<Measured> {
  const agent = new Agent({ keepAlive: true });
  const health = new Agent({ keepAlive: true });
  const end = performance.now() + ATTACK_MS;
  let sent = 0;
  const loop = async (): Promise<void> => {
    while (performance.now() < end) {
      const from = `127.0.0.${2 + (sent++ % addresses)}`;
      const status = await send(svc, "/org/private/git-upload-pack", { agent, from, body });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const times: number[] = [];
  const probe = async (): Promise<void> => {
    const startedAt = performance.now();
    assert.equal(await send(svc, "/healthz", { agent: health }), 200);
    times.push(performance.now() - startedAt);
  };
  let peakMb = 0;
  try {
    const running = Array.from({ length: LOOPS }, async () => loop());
    // Probes start by the clock and not one after the other, so that those sent during a pause count too.
    while (performance.now() < end) {
      running.push(probe());
      peakMb = Math.max(peakMb, residentMegabytes(svc.pid));
      await sleep(HEALTH_INTERVAL_MS);
    }
    await Promise.all(running);
    peakMb = Math.max(peakMb, residentMegabytes(svc.pid));
  } finally {
    agent.destroy();
    health.destroy();
  }
  times.sort((a, b) => a - b);
  return { p90: times[Math.floor(times.length * 0.9)] ?? Infinity, peakMb };
}
