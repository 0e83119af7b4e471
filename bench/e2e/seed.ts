import { rm } from "node:fs/promises";
import { join } from "node:path";
import { git, run as runCommand, startCodeHostProcess, startSvc, until } from "@devplat/testkit";
import { Administration } from "../lib/administration.ts";
import { filled, idle } from "../lib/filled.ts";
import type { Report } from "../lib/report.ts";
import { benchRepositories, workFolder } from "../lib/repositories.ts";
import type { Row } from "../lib/row.ts";
import { interleave, summarize } from "../lib/statistics.ts";

const SCRIPT = join(import.meta.dirname, "../../apps/svc/src/seed-client/svc-seed.sh");
const LIMIT_MS = 600_000;

interface Sample {
  readonly wall: number;
  /** CPU seconds of the client with all its processes. */
  readonly cpu: number;
}

/** Clones by a seed, against git's own: direct, and warm through the service. */
export async function run(rounds: number): Promise<Report> {
  const work = await workFolder("seed");
  const upstream = await startCodeHostProcess();
  const svc = await startSvc({ codeHost: upstream });
  try {
    const administration = await Administration.signIn(svc.url);
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const { name, path, large } of await benchRepositories()) {
      await upstream.addRepository("bench", name, {
        build: async (dir) => {
          await git(["clone", "-q", "--mirror", path, dir], { timeoutMs: LIMIT_MS });
        },
      });
      const direct = `${upstream.url}/bench/${name}.git`;
      const through = `${svc.url}/bench/${name}.git`;
      const id = await administration.list("bench", name);
      const target = join(work, "target.git");
      const clone = async (program: readonly string[], url: string): Promise<Sample> => {
        await rm(target, { recursive: true, force: true });
        await idle(svc.pid);
        return timed([...program, "-q", "--bare", url, target]);
      };
      const byGit = ["git", "clone"];
      const manifest = async (): Promise<Response> => fetch(`${through}/svc/seed`);
      await clone(byGit, through);
      await filled(administration, id, svc.pid);
      await until(async () => (await manifest()).status === 200);
      await filled(administration, id, svc.pid);
      const samples = await interleave(
        {
          direct: () => clone(byGit, direct),
          warm: () => clone(byGit, through),
          seed: () => clone(["sh", SCRIPT], through),
        },
        rounds,
      );
      const summary = (kind: keyof typeof samples, what: keyof Sample) =>
        summarize(samples[kind].map((each) => each[what]));
      const row = (text: string, what: keyof Sample, atMost: number | undefined): Row => ({
        what: `${name}: clone by the seed, ${text}`,
        unit: "s",
        ours: summary("seed", what),
        reference: summary("direct", what),
        referenceName: "git clone, direct",
        others: [{ name: "git clone through svc, warm", value: summary("warm", what) }],
        ...(atMost === undefined ? {} : { target: { atMost } }),
      });
      rows.push(row("wall", "wall", large ? 0.25 : 0.5), row("client CPU", "cpu", large ? 0.1 : undefined));
      const { pack } = (await (await manifest()).json()) as { pack: { size: number; objects: number } };
      const megabytes = (pack.size / 1e6).toFixed(1);
      notes.push(`${name}: the seed has ${pack.objects} objects in ${megabytes} MB.`);
    }
    return {
      name: "seed",
      title: "Clones by a seed, compared with git clone",
      method: `Each clone is bare, as in \`git clone --bare\`. By the seed: the script \`svc-seed\`, which \`svc clone\` runs; the seed is current, so the fetch behind it brings nothing. Client CPU is that of all processes of the client, as the shell counts them. Client, service and code host share the cores. All kinds in turn, ${rounds} rounds.`,
      rows,
      notes,
    };
  } finally {
    await svc.stop();
    await upstream.stop();
  }
}

/** Runs a command to its end. */
async function timed(command: readonly string[]): Promise<Sample> {
  // POSIX: the second line of times has user and system time of all children that were waited for.
  const script = '"$@" >&2 || exit; times';
  const start = performance.now();
  const { code, stdout, stderr } = await runCommand("sh", ["-c", script, "sh", ...command], {
    timeoutMs: LIMIT_MS,
  });
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${stderr}`);
  const wall = (performance.now() - start) / 1000;
  const [, children = ""] = stdout.split("\n");
  const parts = [...children.matchAll(/(\d+)m([\d.]+)s/g)];
  if (parts.length !== 2) throw new Error(`the shell printed no times: ${stdout}`);
  if (/without the seed/.test(stderr)) throw new Error(stderr);
  return { wall, cpu: parts.reduce((sum, [, minutes, s]) => sum + Number(minutes) * 60 + Number(s), 0) };
}
