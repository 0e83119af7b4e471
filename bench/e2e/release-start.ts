import { join } from "node:path";
import { run as runCommand, tempFolder } from "@devplat/testkit";
import { buildProgram, type ProgramName } from "../../tools/build/single/program.ts";
import { FIRST_HIT_MS, prepareFirstHit } from "../lib/first-hit.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { exactly, interleave, summarize, type Summary } from "../lib/statistics.ts";

/** Milliseconds of `version` (the aim of the project). */
const VERSION_MS = 60;
const VERSION = "1.0.0";
/** Starts of a round. */
const RUNS = 7;
/** Settings of the C library in svc.service. */
const UNIT_SETTINGS = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "32768",
  MALLOC_MMAP_MAX_: "16384",
};

/** Start-up of the single executables, as the packages install them. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-release");
  try {
    const programs = {} as Record<ProgramName, string>;
    for (const name of ["svc", "agent"] as const) {
      programs[name] = await buildProgram(name, join(folder.path, name), VERSION);
    }
    const starts = await interleave(
      {
        node: () => version(process.execPath, "--version"),
        svc: () => version(programs.svc, "version"),
        agent: () => version(programs.agent, "version"),
        script: () => version(process.execPath, "-e", "0"),
      },
      rounds * RUNS,
    );
    const hits: { wall: number; cpu: number }[] = [];
    const firstHit = await prepareFirstHit(programs.svc, folder.path, UNIT_SETTINGS);
    if (firstHit !== undefined) {
      for (let hit = 0; hit < rounds * RUNS; hit++) {
        const { svc, wall, cpu } = await firstHit.measure();
        hits.push({ wall, cpu });
        await svc.stop();
      }
      await firstHit.stop();
    }
    const aimed = (what: string, ours: Summary, aim: number): Row => ({
      what,
      unit: "ms",
      ours,
      reference: exactly(aim),
      referenceName: "aimed at",
      target: { atMost: 1 },
    });
    const plain = (kind: "svc" | "agent", reference: "node" | "script", referenceName: string): Row => ({
      what: `${kind} version, against ${referenceName}`,
      unit: "ms",
      ours: summarize(starts[kind]),
      reference: summarize(starts[reference]),
      referenceName,
    });
    return {
      name: "release-start",
      title: "Start-up of the installed programs",
      method: `The files that the packages install as /usr/bin/svc and /usr/bin/agent: single executables with compiled code. Whole processes, ${rounds * RUNS} starts of each kind in turn. First hit: from the command to the last byte of a stored full clone of express, with an ls-refs before it, over a cache on disk, with the settings of the C library of svc.service.`,
      rows: [
        aimed("svc version", summarize(starts.svc), VERSION_MS),
        aimed("agent version", summarize(starts.agent), VERSION_MS),
        plain("svc", "script", "node -e 0"),
        plain("svc", "node", "node --version"),
        plain("agent", "script", "node -e 0"),
        ...(hits.length === 0
          ? []
          : [
              aimed(
                "svc serve to the last byte of the first hit, wall",
                summarize(hits.map(({ wall }) => wall)),
                FIRST_HIT_MS,
              ),
              aimed(
                "svc serve to the last byte of the first hit, cpu",
                summarize(hits.map(({ cpu }) => cpu)),
                FIRST_HIT_MS,
              ),
            ]),
      ],
    };
  } finally {
    await folder.remove();
  }
}

/** @returns milliseconds from the command to its end */
async function version(program: string, ...args: readonly string[]): Promise<number> {
  const begin = performance.now();
  const { code, stderr } = await runCommand(program, args);
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}: ${stderr}`);
  return performance.now() - begin;
}
