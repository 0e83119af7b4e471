import { readFile } from "node:fs/promises";
import { encodeCommandRequest, encodeLsRefsRequest } from "@devplat/git-protocol";
import { cpuSecondsOf, startCodeHostProcess, startSvc } from "@devplat/testkit";
import { startBareServer } from "../lib/bare-server.ts";
import { KeptConnection, postBytes } from "../lib/kept-connection.ts";
import { HEADERS, postRaw, recordFullFetch } from "../lib/raw-fetch.ts";
import type { Report } from "../lib/report.ts";
import { workFolder } from "../lib/repositories.ts";
import { exactly, interleave, summarize } from "../lib/statistics.ts";

/** Requests of one sample: the kernel counts CPU in steps of 10 ms. */
const REQUESTS = 2000;
/** Fetches after which an `ls-refs` renews the authorization, as each client's does. */
const FETCHES_OF_AN_AUTHORIZATION = 200;
const RESULT_TYPE = "application/x-git-upload-pack-result";
/** Targets of the specification, in milliseconds. */
const SMALL_ANSWER_CPU_MS = 0.6;
const LS_REFS_ADDED_MS = 1;

const LS_REFS = encodeCommandRequest(
  encodeLsRefsRequest(
    { symrefs: true, peel: true, unborn: true, refPrefixes: ["refs/heads/", "refs/tags/"], unknown: [] },
    ["agent=git/bench", "object-format=sha1"],
  ),
);

/** Fixed cost of requests on one kept connection, compared with a `node:http` server that sends the same bytes. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("requests");
  const upstream = await startCodeHostProcess();
  await upstream.addRepository("bench", "tiny");
  const svc = await startSvc({ codeHost: upstream });
  await svc.addCachedRepository("bench", "tiny");
  const file = await recordFullFetch(`${upstream.url}/bench/tiny.git`, work, "tiny");
  await postRaw(`${svc.url}/bench/tiny.git`, file);
  const path = "/bench/tiny.git/git-upload-pack";
  const through = await KeptConnection.open(svc.url);
  const lsRefs = postBytes(svc.url + path, HEADERS, LS_REFS);
  const fetch = postBytes(svc.url + path, HEADERS, await readFile(file));
  await through.send(lsRefs);
  const bare = await startBareServer((await through.send(fetch)).body, RESULT_TYPE);
  const plain = await KeptConnection.open(bare.url);
  const bareFetch = postBytes(bare.url + path, HEADERS, await readFile(file));

  const direct = await KeptConnection.open(upstream.url);
  const refs = (await direct.send(postBytes(upstream.url + path, HEADERS, LS_REFS))).body;
  // A code host that takes no time, so that the spread of git's own time does not hide what is added.
  const host = await startBareServer(unchunked(refs), RESULT_TYPE);
  const before = await startSvc({ codeHost: { url: host.url, apiUrl: host.url } });
  await before.addCachedRepository("bench", "tiny");
  const [toHost, toService] = [await KeptConnection.open(host.url), await KeptConnection.open(before.url)];
  const askHost = postBytes(host.url + path, HEADERS, LS_REFS);
  const askService = postBytes(before.url + path, HEADERS, LS_REFS);

  const renew = async (): Promise<void> => void (await through.send(lsRefs));
  const kinds = {
    bare: () => sample(plain, bareFetch, bare.cpuSeconds),
    svc: () => sample(through, fetch, () => cpuSecondsOf(svc.pid).own, renew),
    host: () => sample(toHost, askHost, host.cpuSeconds),
    lsRefs: () => sample(toService, askService, () => cpuSecondsOf(before.pid).own),
  };
  try {
    // Once more than is counted: the first requests run code that is not compiled yet.
    await interleave(kinds, 1);
    const runs = await interleave(kinds, rounds);
    const added = runs.lsRefs.map(({ p50 }, round) => p50 - (runs.host[round]?.p50 ?? 0));
    return {
      name: "requests",
      title: "Fixed cost of a request",
      method: `One kept connection sends ${REQUESTS} requests a sample, one after another, from another process. Small answers: a stored response of a repository with few objects, with an \`ls-refs\` before each ${FETCHES_OF_AN_AUTHORIZATION} of them. \`ls-refs\`: the code host is a \`node:http\` server that sends a recorded response, asked directly and through the service. CPU is that of the whole process of the server. All kinds in turn, ${rounds} rounds.`,
      rows: [
        {
          what: "small answer: CPU",
          unit: "ms",
          ours: summarize(runs.svc.map(({ cpuMs }) => cpuMs)),
          reference: exactly(SMALL_ANSWER_CPU_MS),
          referenceName: "the limit",
          target: { atMost: 1 },
        },
        {
          what: "small answer: rate",
          unit: "1/s",
          ours: summarize(runs.svc.map(({ rate }) => rate)),
          reference: summarize(runs.bare.map(({ rate }) => rate)),
          referenceName: "bare node:http",
          target: { atLeast: 0.2 },
        },
        {
          what: "ls-refs: added time, p50",
          unit: "ms",
          ours: summarize(added),
          reference: exactly(LS_REFS_ADDED_MS),
          referenceName: "the limit",
          target: { atMost: 1 },
        },
      ],
      notes: [
        `CPU of an \`ls-refs\`: ${summarize(runs.lsRefs.map(({ cpuMs }) => cpuMs)).median.toFixed(2)} ms; of a small answer of the bare server: ${summarize(runs.bare.map(({ cpuMs }) => cpuMs)).median.toFixed(3)} ms.`,
      ],
    };
  } finally {
    for (const connection of [through, plain, direct, toHost, toService]) connection.close();
    await Promise.all([bare.stop(), host.stop(), svc.stop(), before.stop()]);
    await upstream.stop();
  }
}

async function sample(
  connection: KeptConnection,
  request: Buffer,
  cpu: () => number,
  renew?: () => Promise<void>,
): Promise<{ readonly cpuMs: number; readonly rate: number; readonly p50: number }> {
  const cpuBefore = cpu();
  const startedAt = performance.now();
  const times: number[] = [];
  for (let index = 0; index < REQUESTS; index++) {
    if (index % FETCHES_OF_AN_AUTHORIZATION === 0) await renew?.();
    times.push((await connection.send(request)).ms);
  }
  return {
    cpuMs: ((cpu() - cpuBefore) * 1000) / REQUESTS,
    rate: (REQUESTS * 1000) / (performance.now() - startedAt),
    p50: summarize(times).median,
  };
}

/** The bytes of a body without chunked framing, if it has one. A pkt-line begins with four digits and no line end. */
function unchunked(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const end = body.indexOf("\r\n", at);
    const length = /^[0-9a-f]+$/i.exec(body.toString("latin1", at, Math.max(at, end)))?.[0];
    if (end < 0 || length === undefined) return body;
    const size = Number.parseInt(length, 16);
    if (size === 0) return Buffer.concat(parts);
    parts.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
}
