/**
 * `npm run bench [NAME …]`: every benchmark, or those named. Each compares with its reference in interleaved runs and
 * writes `bench/results/NAME.{json,md,svg}`. `ROUNDS` (default 5) sets the runs of each kind.
 */
import { verdict, writeReport, type Report } from "./lib/report.ts";

const BENCHMARKS: Readonly<Record<string, () => Promise<{ run(rounds: number): Promise<Report> }>>> = {
  growth: () => import("./micro/growth.ts"),
  "ssh-signatures": () => import("./micro/ssh-signatures.ts"),
  fill: () => import("./e2e/fill.ts"),
  clone: () => import("./e2e/clone.ts"),
  concurrent: () => import("./e2e/concurrent.ts"),
  "api-proxy": () => import("./e2e/api-proxy.ts"),
  "svc-start": () => import("./e2e/svc-start.ts"),
  "svc-tokens": () => import("./e2e/svc-tokens.ts"),
  "agent-start": () => import("./e2e/agent-start.ts"),
  "agent-sync": () => import("./e2e/agent-sync.ts"),
  "agent-web": () => import("./e2e/agent-web.ts"),
  "agent-mount": () => import("./e2e/agent-mount.ts"),
  "agent-volumes": () => import("./e2e/agent-volumes.ts"),
  "agent-ssh": () => import("./e2e/agent-ssh.ts"),
  "agent-ssh-idle": () => import("./e2e/agent-ssh-idle.ts"),
};

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(BENCHMARKS);
const rounds = Number(process.env["ROUNDS"] ?? 5);
for (const name of names) {
  const load = BENCHMARKS[name];
  if (load === undefined) {
    process.stderr.write(`No benchmark is called "${name}": ${Object.keys(BENCHMARKS).join(", ")}\n`);
    process.exitCode = 1;
    continue;
  }
  const report = await (await load()).run(rounds);
  process.stdout.write(`${writeReport(report)}\n`);
  const missed = report.rows.filter((row) => verdict(row) === "missed");
  for (const row of missed) process.stderr.write(`target missed: ${row.what}\n`);
}
