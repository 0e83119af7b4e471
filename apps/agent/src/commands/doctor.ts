import { lstat } from "node:fs/promises";
import { formatProblem } from "@devplat/config";
import { Findings, type Outcome } from "@devplat/cli/findings";
import { assemblePreview, enrolmentRunner, type SyncParts } from "../assemble/index.ts";
import type { Host } from "../host.ts";
import { BRAND } from "../brand.ts";
import type { LoadedConfig } from "../config/load.ts";
import { canRun } from "../platform/programs.ts";
import { mountPlaceOf } from "../sync/mounted/mount-place.ts";
import { TargetPolicy } from "../sync/target/target-policy.ts";
import { exposedFiles } from "../sync/target/exposed-files.ts";
import type { RunCommand } from "./common/command.ts";
import { hostOf, loadWith } from "./common/context.ts";
import { isDaemonRunning } from "./common/daemon-process.ts";
import { examineForwards } from "./doctor/forward-findings.ts";
import { examineLending } from "./doctor/lending-findings.ts";
import { examineMount } from "./doctor/mount-findings.ts";
import { examineVolumes } from "./doctor/volume-findings.ts";
import { examineSshAgent } from "./doctor/ssh-agent-findings.ts";
import { untilStopped } from "./common/signals.ts";
import { publicMessage } from "../errors.ts";

/** Looks at everything that sync depends on, and says what is wrong. Writes nothing; exit code 1 if there is a fault. */
export const run: RunCommand = async (invocation) => {
  const host = hostOf(invocation);
  const findings = new Findings(publicMessage);
  const stop = untilStopped();
  try {
    await findings.attempt("configuration", async () => {
      const loaded = await loadWith(host, invocation.flags.config, "cached");
      await examine(host, loaded, findings, stop.signal);
      return loaded.warnings.length === 0
        ? loaded.sources.join(", ")
        : { warning: loaded.warnings.join("; ") };
    });
  } finally {
    stop.release();
  }
  return findings.print(invocation.options);
};

async function examine(
  host: Host,
  loaded: LoadedConfig,
  findings: Findings,
  signal: AbortSignal,
): Promise<void> {
  for (const folder of ["state", "data", "cache"] as const) {
    await findings.attempt(`folder ${host.places[folder]}`, () => folderFinding(host.places[folder]));
  }
  await findings.attempt("daemon", async () =>
    (await isDaemonRunning(host)) ? "running" : { warning: `not running; '${BRAND.command} run' starts it` },
  );
  await findings.attempt("templates", async () => {
    const { templateFaults } = await import("../config/template-faults.ts");
    const faults = templateFaults(loaded).map(formatProblem);
    return faults.length === 0 ? "" : { fault: faults.join("; ") };
  });
  await examineForwards(host, loaded, findings);
  await examineSshAgent(host, loaded, findings);
  await examineMount(host, loaded, findings);
  await examineVolumes(host, loaded, findings);
  const parts = await assemblePreview(host, loaded);
  try {
    let signedIn = false;
    await findings.attempt("sign-in", async () => {
      await parts.signIn.ensure(signal);
      signedIn = true;
      return parts.signIn.state().source;
    });
    if (signedIn) {
      await examineStore(host, loaded, parts, findings, signal);
      await examineLending(host, loaded, parts, findings, signal);
    }
  } finally {
    await parts.close();
  }
  const targets = new TargetPolicy(host.places, loaded.config.sync.allowed_targets, loaded.sources);
  for (const rule of loaded.config.rules.filter(({ enabled }) => enabled)) {
    await findings.attempt(`target of rule ${rule.name}`, async () => {
      if (rule.target.mount !== undefined) {
        const { mountpoint, remedy } = mountPlaceOf(loaded.config, host.places.home);
        if (mountpoint === undefined) return { fault: `there is no mount for this file: ${remedy}` };
        return `${mountpoint}/${rule.target.mount}, on no disk`;
      }
      const { file } = await targets.resolve(rule.target.path, rule.remote);
      const [exposed] = await exposedFiles([rule], host.places.home);
      return exposed === undefined ? file : { warning: exposed.warning };
    });
    const [program] = rule.run?.command ?? [];
    if (program === undefined) continue;
    await findings.attempt(`command of rule ${rule.name}`, async () =>
      canRun(program, host.environment) ? "" : { fault: "the program is not in PATH or cannot be run" },
    );
  }
}

async function examineStore(
  host: Host,
  loaded: LoadedConfig,
  parts: SyncParts,
  findings: Findings,
  signal: AbortSignal,
): Promise<void> {
  await findings.attempt("store", async () => {
    await parts.store.ping(signal);
    return parts.facts.address;
  });
  await findings.attempt("rules", async () => {
    const { failures, missing } = await parts.engine.preview(signal);
    const all = [...failures, ...missing].map(([rule, message]) => `${rule}: ${message}`);
    const count = `${loaded.config.rules.length} would work`;
    return failures.size > 0
      ? { fault: all.join("; ") }
      : all.length > 0
        ? { warning: all.join("; ") }
        : count;
  });
  const runner = enrolmentRunner(host, loaded, parts, () => undefined);
  await findings.attempt("enrolments", async () => {
    await runner.look(signal);
    const open = runner.list().filter(({ state }) => state !== "complete" && state !== "skipped");
    return open.length === 0 ? "" : { warning: `outstanding: ${open.map(({ key }) => key).join(", ")}` };
  });
}

async function folderFinding(folder: string): Promise<Outcome> {
  const found = await lstat(folder).catch(() => undefined);
  if (found === undefined) return "not made yet";
  if (!found.isDirectory()) return { fault: "it is not a folder" };
  if (process.platform === "win32") return "";
  if (found.uid !== process.geteuid?.()) return { fault: "it belongs to another user" };
  return (found.mode & 0o077) === 0 ? "" : { warning: "others can look into it; the next start narrows it" };
}
