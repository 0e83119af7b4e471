import { randomBytes } from "node:crypto";
import { Secret } from "@devplat/base";
import { fixedCredentials } from "@devplat/object-store";
import { openS3Store, type S3Settings } from "@devplat/object-store/s3";
import {
  cpuSecondsOf,
  git,
  startCodeHostProcess,
  startSvc,
  startVersityGateway,
  until,
  type CodeHostProcess,
  type S3Server,
  type Svc,
} from "@devplat/testkit";
import { ResponseSource } from "../../apps/svc/src/cache/object-tier/responses/response-source.ts";
import { GrowingSums } from "../../apps/svc/src/cache/responses/block-sums.ts";
import { Administration } from "../lib/administration.ts";
import { filled, idle } from "../lib/filled.ts";
import { peakMegabytes, residentMegabytes, resetPeak } from "../lib/memory.ts";
import { startObjectRelay } from "../lib/object-relay.ts";
import { postRaw, curl, recordFullFetch, recordLsRefs } from "../lib/raw-fetch.ts";
import { benchRepositories, workFolder, type BenchRepository } from "../lib/repositories.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { summarize } from "../lib/statistics.ts";

/** Targets of issue 19. */
const LOCAL_HIT = 1.02;
const FIRST_HIT = 1.3;
const OF_CODE_HOST = 0.5;
const UPLOAD_SECONDS = 0.15;
/** Requests in one sample: the kernel counts CPU in ticks of 10 ms. */
const REQUESTS_PER_SAMPLE = 20;
const WARM_REQUESTS = 3;
const UPLOAD_BYTES = 100e6;

/** Hits with a bucket behind the cache: local ones, and the first one of an empty instance. Cost of an upload. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("object");
  const [upstream, server] = [await startCodeHostProcess(), await startVersityGateway()];
  const rows: Row[] = [];
  try {
    for (const repository of await benchRepositories()) {
      await upstream.addRepository("bench", repository.name, {
        build: async (dir) =>
          void (await git(["clone", "-q", "--mirror", repository.path, dir], { timeoutMs: 600_000 })),
      });
      rows.push(...(await measureHits(repository, { upstream, server, work, rounds })));
    }
    rows.push(await measureUpload(server, rounds));
  } finally {
    await upstream.stop();
    await server.stop();
  }
  return {
    name: "object",
    title: "A bucket behind the cache",
    method: `The bucket is versitygw 1.8 on the same machine. One curl posts the recorded \`fetch\` of a full clone and throws the response away. Local hits: ${REQUESTS_PER_SAMPLE} a sample, at a service with a bucket and at one without, in turn. First hit: a new service with an empty folder and its own database, from the \`fetch\` after an \`ls-refs\` to the last byte, next to a Node program that only sends, hashes and stores the same object. Upload: 100 MB in parts, with the checksums of the slices, CPU of the process. ${rounds} rounds.`,
    rows,
  };
}

interface Stand {
  readonly upstream: CodeHostProcess;
  readonly server: S3Server;
  readonly work: string;
  readonly rounds: number;
}

function startWithBucket({ upstream, server }: Stand): Promise<Svc> {
  return startSvc({
    codeHost: upstream,
    env: {
      SVC_ENCRYPTION_KEY: "5a".repeat(32),
      SVC_CACHE_OBJECT_BUCKET: server.bucket,
      SVC_CACHE_OBJECT_REGION: server.region,
      SVC_CACHE_OBJECT_ENDPOINT: server.endpoint,
      SVC_CACHE_OBJECT_ACCESS_KEY_ID: server.accessKeyId,
      SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: server.secretAccessKey,
    },
  });
}

async function measureHits({ name }: BenchRepository, stand: Stand): Promise<Row[]> {
  const { upstream, server, work, rounds } = stand;
  const path = `bench/${name}.git`;
  const request = await recordFullFetch(`${upstream.url}/${path}`, work, name);
  const lsRefs = await recordLsRefs(work);
  const [bucket, plain] = [await startWithBucket(stand), await startSvc({ codeHost: upstream })];
  const rows: Row[] = [];
  try {
    for (const svc of [bucket, plain]) {
      const administration = await Administration.signIn(svc.url);
      const id = await administration.list("bench", name);
      await postRaw(`${svc.url}/${path}`, request);
      await filled(administration, id, svc.pid);
      for (let count = 0; count < WARM_REQUESTS; count++) {
        await postRaw(`${svc.url}/${path}`, request);
        await idle(svc.pid);
      }
    }
    const ways = { bucket: [] as number[], plain: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      for (const [way, svc] of [
        ["bucket", bucket],
        ["plain", plain],
      ] as const) {
        const before = cpuSecondsOf(svc.pid).own;
        for (let count = 0; count < REQUESTS_PER_SAMPLE; count++)
          await postRaw(`${svc.url}/${path}`, request);
        ways[way].push((cpuSecondsOf(svc.pid).own - before) / REQUESTS_PER_SAMPLE);
      }
    }
    rows.push({
      what: `${name}: hit from the local tier, CPU`,
      unit: "s",
      ours: summarize(ways.bucket),
      reference: summarize(ways.plain),
      referenceName: "without a bucket",
      target: { atMost: LOCAL_HIT },
    });
  } finally {
    await plain.stop();
    await bucket.stop();
  }
  const relay = await startObjectRelay(server, work);
  try {
    const key = await largestObject(server, `/${name}/responses/`);
    const samples = { first: [] as number[], relay: [] as number[], direct: [] as number[] };
    const peaks: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const svc = await startWithBucket(stand);
      try {
        await (await Administration.signIn(svc.url)).list("bench", name);
        await until(async () => (await (await fetch(`${svc.url}/readyz`)).text()) === "ready\n");
        // As every clone does before its fetch.
        await postRaw(`${svc.url}/${path}`, lsRefs);
        const [usual] = [residentMegabytes(svc.pid), resetPeak(svc.pid)];
        samples.first.push((await postRaw(`${svc.url}/${path}`, request)).seconds);
        peaks.push(peakMegabytes(svc.pid) - usual);
      } finally {
        await svc.stop();
      }
      samples.relay.push((await curl([relay.urlOf(key)])).seconds);
      samples.direct.push((await postRaw(`${upstream.url}/${path}`, request)).seconds);
    }
    const what = `${name}: first hit of an empty instance`;
    const ours = summarize(samples.first);
    const against = { unit: "s", ours };
    rows.push(
      {
        ...against,
        what: `${what}, wall`,
        reference: summarize(samples.relay),
        referenceName: "bare Node relay that hashes and stores the object",
        target: { atMost: FIRST_HIT },
      },
      {
        ...against,
        what: `${what}, wall, next to the code host`,
        reference: summarize(samples.direct),
        referenceName: "the transfer from the code host",
        target: { atMost: OF_CODE_HOST },
      },
      {
        what: `${what}, memory above idle`,
        unit: "MB",
        ours: summarize(peaks),
        reference: summarize([64]),
        referenceName: "aimed at",
        target: { atMost: 1 },
      },
    );
  } finally {
    await relay.stop();
  }
  return rows;
}

async function measureUpload(server: S3Server, rounds: number): Promise<Row> {
  const store = openTestStore(server);
  const content = randomBytes(UPLOAD_BYTES);
  const sums = new GrowingSums();
  sums.push(content);
  const seconds: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const source = new ResponseSource({
      size: content.length,
      sums: sums.finish(),
      read: (target, position) => Promise.resolve(content.copy(target, 0, position)),
      close: () => Promise.resolve(),
    });
    const before = process.cpuUsage();
    await store.putLarge(`upload/${round}`, source);
    const { user, system } = process.cpuUsage(before);
    if (round > 0) seconds.push((user + system) / 1e6);
  }
  await store.close();
  return {
    what: "upload of a response of 100 MB, CPU",
    unit: "s",
    ours: summarize(seconds),
    reference: summarize([UPLOAD_SECONDS]),
    referenceName: "aimed at",
    target: { atMost: 1 },
  };
}

async function largestObject(server: S3Server, part: string): Promise<string> {
  const store = openTestStore(server);
  let found: { readonly key: string; readonly length: number } | undefined;
  let from: string | undefined;
  do {
    const page = await store.list("v1/", from === undefined ? {} : { from });
    for (const entry of page.entries)
      if (entry.key.includes(part) && entry.length > (found?.length ?? 0)) found = entry;
    from = page.next;
  } while (from !== undefined);
  await store.close();
  if (found === undefined) throw new Error(`the bucket has nothing below ${part}`);
  return found.key;
}

function openTestStore(server: S3Server): ReturnType<typeof openS3Store> {
  const { endpoint, bucket, region, accessKeyId, secretAccessKey } = server;
  const settings: S3Settings = {
    endpoint,
    bucket,
    region,
    credentials: fixedCredentials(accessKeyId, new Secret(secretAccessKey)),
  };
  return openS3Store(settings);
}
