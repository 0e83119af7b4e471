import { join } from "node:path";
import { cpuSecondsOf, git, startCodeHostProcess, startSvc } from "@devplat/testkit";
import { Administration } from "../lib/administration.ts";
import { filled, idle } from "../lib/filled.ts";
import { startTlsNginx } from "../lib/nginx.ts";
import { HEADERS, curl, postRaw, recordFullFetch } from "../lib/raw-fetch.ts";
import { benchRepositories, workFolder } from "../lib/repositories.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { summarize } from "../lib/statistics.ts";

const SECRET = "the-secret-of-the-benchmark-in-visible-ascii";
/** Requests in one sample: the kernel counts CPU in ticks of 10 ms. */
const REQUESTS_PER_SAMPLE = 10;
/** Requests until the response is stored in its framed form. */
const WARM_REQUESTS = 3;

const WAYS = ["accel", "relayed", "static"] as const;

/** Stored responses over TLS: sent by the web server in front (`server.accel`), and relayed by it. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("accel");
  const files = await workFolder("accel/static");
  const storage = await workFolder("accel/cache");
  const upstream = await startCodeHostProcess();
  const env = { SVC_SERVER_ACCEL: "nginx", SVC_SERVER_ACCEL_SECRET: SECRET, SVC_CACHE_STORAGE_PATH: storage };
  const svc = await startSvc({ codeHost: upstream, env });
  const places = { folder: files, behind: svc.url, secret: SECRET, handed: join(storage, "_accel") };
  const nginx = await startTlsNginx(places, join(work, "nginx"));
  try {
    const administration = await Administration.signIn(svc.url);
    const rows: Row[] = [];
    for (const { name, path } of await benchRepositories()) {
      await upstream.addRepository("bench", name, {
        build: async (dir) =>
          void (await git(["clone", "-q", "--mirror", path, dir], { timeoutMs: 600_000 })),
      });
      const id = await administration.list("bench", name);
      const request = await recordFullFetch(`${upstream.url}/bench/${name}.git`, work, name);
      await postRaw(`${svc.url}/bench/${name}.git`, request, join(files, name));
      await filled(administration, id, svc.pid);
      for (let count = 0; count < WARM_REQUESTS; count++) {
        await postRaw(`${svc.url}/bench/${name}.git`, request);
        await idle(svc.pid);
      }
      const post = ["-k", ...HEADERS.flatMap((header) => ["-H", header]), "--data-binary", `@${request}`];
      const args = {
        accel: [...post, `${nginx.url}/accel/bench/${name}.git/git-upload-pack`],
        relayed: [...post, `${nginx.url}/bench/${name}.git/git-upload-pack`],
        static: ["-k", `${nginx.url}/static/${name}`],
      };
      const samples = { accel: [] as number[], relayed: [] as number[], static: [] as number[] };
      const cpu = (): number => cpuSecondsOf(svc.pid).own + nginx.cpuSeconds();
      for (let round = 0; round < rounds; round++) {
        for (const way of WAYS) {
          await curl(args[way]);
          const before = cpu();
          for (let count = 0; count < REQUESTS_PER_SAMPLE; count++) await curl(args[way]);
          samples[way].push((cpu() - before) / REQUESTS_PER_SAMPLE);
        }
      }
      rows.push({
        what: `${name}: stored response over TLS, sent by nginx, CPU of svc and nginx`,
        unit: "s",
        ours: summarize(samples.accel),
        reference: summarize(samples.relayed),
        referenceName: "relayed by nginx",
        others: [{ name: "nginx alone, the same bytes as a file", value: summarize(samples.static) }],
      });
    }
    return {
      name: "accel",
      title: "Stored responses over TLS, with a web server in front",
      method: `nginx ends TLS. One curl posts the recorded \`fetch\` of a full clone ${REQUESTS_PER_SAMPLE} times a sample, each over a new connection, and throws the answer away. CPU is that of svc and nginx together, with the access check of each request (\`cache.grant_seconds\` is 5). All ways in turn, ${rounds} rounds.`,
      rows,
    };
  } finally {
    await nginx.stop();
    await svc.stop();
    await upstream.stop();
  }
}
