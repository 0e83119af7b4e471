import { mkdir, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join, resolve } from "node:path";
import { cpuSecondsOf, run as runCommand, tempFolder } from "@devplat/testkit";
import { buildAgent } from "../../tools/build/agent.ts";
import { buildProgram } from "../../tools/build/single/program.ts";
import manifest from "../../apps/agent/package.json" with { type: "json" };
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { interleave, summarize, type Summary } from "../lib/statistics.ts";

const LAUNCHER = resolve(import.meta.dirname, "../../apps/agent/bin/agent");
/** Runs per sample: one takes a few ticks of the kernel's 10 ms CPU clock. */
const RUNS_PER_SAMPLE = 20;
const RULES = 50;

interface Sample {
  readonly cpu: number;
  readonly wall: number;
}

/** Start-up of the daemon's command line against Node doing nothing. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-agent");
  try {
    const env = await workspace(folder.path);
    const launcher = await buildAgent(join(folder.path, "release"));
    const executable = await buildProgram("agent", join(folder.path, "single"), manifest.version);
    const agent = (...args: string[]) => sample(LAUNCHER, args, env);
    await agent("sync");
    // From now on login-check is suppressed.
    await agent("login-check");
    const samples = await interleave(
      {
        node: () => sample(process.execPath, ["-e", "0"], env),
        check: () => agent("login-check"),
        bundledCheck: () => sample(launcher, ["login-check"], env),
        executableCheck: () => sample(executable, ["login-check"], env),
        version: () => agent("version"),
        sync: () => agent("sync"),
        bundledSync: () => sample(launcher, ["sync"], env),
        executableSync: () => sample(executable, ["sync"], env),
      },
      rounds,
    );
    const of = (kind: keyof typeof samples, what: keyof Sample): Summary =>
      summarize(samples[kind].map((each) => each[what] * 1000));
    const row = (kind: keyof typeof samples, name: string, what: keyof Sample, atMost?: number): Row => ({
      what: `${name}, ${what}`,
      unit: "ms",
      ours: of(kind, what),
      reference: of("node", what),
      referenceName: "node -e 0",
      ...(atMost !== undefined && { target: { atMost } }),
    });
    return {
      name: "agent-start",
      title: "Start-up of the daemon's command line",
      method: `Whole processes with the launcher, ${RUNS_PER_SAMPLE} runs a sample, compile cache warm, all kinds in turn, ${rounds} rounds. The cycle has ${RULES} rules on ${RULES} files with the embedded store, nothing to change.`,
      rows: [
        row("check", "agent login-check, suppressed", "wall", 1.3),
        row("bundledCheck", "the same, release bundle", "wall", 1.3),
        row("executableCheck", "the same, single executable", "wall", 1.5),
        row("check", "agent login-check, suppressed", "cpu", 1.3),
        row("bundledCheck", "the same, release bundle", "cpu", 1.3),
        row("executableCheck", "the same, single executable", "cpu", 1.5),
        row("version", "agent version", "wall"),
        row("version", "agent version", "cpu"),
        row("sync", `agent sync, ${RULES} unchanged rules`, "wall"),
        row("sync", `agent sync, ${RULES} unchanged rules`, "cpu"),
        row("bundledSync", "the same, release bundle", "wall"),
        row("bundledSync", "the same, release bundle", "cpu"),
        row("executableSync", "the same, single executable", "wall"),
        row("executableSync", "the same, single executable", "cpu"),
      ],
      notes: [
        `The load of the machine at the end: ${(loadavg()[0] ?? 0).toFixed(0)}. More than its cores means that others shared it, and wall times mean little then.`,
      ],
    };
  } finally {
    await folder.remove();
  }
}

async function sample(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Sample> {
  const cpu = cpuSecondsOf(process.pid).children;
  const start = performance.now();
  for (let i = 0; i < RUNS_PER_SAMPLE; i++) {
    const { code, stderr } = await runCommand(command, args, { env });
    if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}: ${stderr}`);
  }
  return {
    cpu: (cpuSecondsOf(process.pid).children - cpu) / RUNS_PER_SAMPLE,
    wall: (performance.now() - start) / 1000 / RUNS_PER_SAMPLE,
  };
}

/** A home with a configuration of {@link RULES} rules and a secret for each. */
async function workspace(home: string): Promise<NodeJS.ProcessEnv> {
  const env = {
    PATH: process.env["PATH"],
    AGENT_NODE: process.execPath,
    HOME: home,
    XDG_CONFIG_DIRS: join(home, "etc"),
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_STATE_HOME: join(home, ".state"),
    XDG_DATA_HOME: join(home, ".share"),
    XDG_CACHE_HOME: join(home, ".cache"),
    XDG_RUNTIME_DIR: join(home, ".run"),
  };
  const config = join(home, "etc/daemon/config.yaml");
  await mkdir(join(home, "etc/daemon"), { recursive: true, mode: 0o755 });
  const rules = Array.from({ length: RULES }, (_, i) => rule(i));
  await writeFile(config, `store: {driver: embedded}\nrules:\n${rules.join("")}`, { mode: 0o600 });
  for (let i = 0; i < RULES; i++) {
    const put = await runCommand(LAUNCHER, ["secrets", "put", `bench/s${i}`, `token=value-${i}`], { env });
    if (put.code !== 0) throw new Error(`agent secrets put ended with ${put.code}: ${put.stderr}`);
  }
  return env;
}

function rule(i: number): string {
  return `  - name: rule-${i}
    key: bench/s${i}
    target: {path: "~/files/f${i}.yaml", format: yaml, template: "service:\\n  token: {{ .token }}\\n"}
`;
}
