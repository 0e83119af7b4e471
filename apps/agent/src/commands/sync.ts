import { RETRY_ALL } from "../sync/retry-scope.ts";
import { flagOf } from "@devplat/cli";
import { noteLine, printLine } from "@devplat/base/terminal";
import { assembleSync, enrolmentRunner, type SyncParts } from "../assemble/index.ts";
import type { Host } from "../host.ts";
import type { LoadedConfig } from "../config/load.ts";
import { AgentError } from "../errors.ts";
import { apiSocketPath } from "../surfaces/socket/places.ts";
import type { CycleResult } from "../status.ts";
import { exposedFiles, type ExposedFile } from "../sync/target/exposed-files.ts";
import type { RunCommand } from "./common/command.ts";
import { openContext } from "./common/context.ts";
import { dryRun } from "./sync/dry-run.ts";
import { runUnattended } from "./enrol/enrolments-at-start.ts";
import { ensureSignedIn } from "./login/login-at-start.ts";
import { untilStopped } from "./common/signals.ts";

/**
 * One sync cycle, by the running daemon if there is one; exit code 1 if a rule failed. As `run --once` it first gets the
 * credentials that do not need the user, as the daemon does.
 */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation, "refresh");
  if (invocation.flags.dryRun) return dryRun(host, loaded, { reveal: flagOf(invocation.options, "reveal") });
  // The running daemon has its own configuration; one that was named here must not be left out in silence.
  const isRun = flagOf(invocation.options, "once");
  const mayAsk = invocation.flags.config === undefined && !isRun;
  const parts = mayAsk ? await assembleOrAsk(host, loaded) : await assembleSync(host, loaded);
  if (typeof parts === "number") return parts;
  const stop = untilStopped();
  try {
    await ensureSignedIn(host, loaded, parts, stop.signal);
    if (isRun) {
      const enrolments = enrolmentRunner(host, loaded, parts, () => undefined);
      await runUnattended(host, enrolments, stop.signal);
    }
    const result = await parts.engine.cycle(stop.signal, { retry: RETRY_ALL });
    return await report(result, parts.state.document.rules, parts.engine.exposedFiles());
  } finally {
    stop.release();
    await parts.close();
  }
};

/** Everything to sync with; or the exit code, if the daemon that holds the lock did it. */
async function assembleOrAsk(host: Host, loaded: LoadedConfig): Promise<SyncParts | number> {
  try {
    return await assembleSync(host, loaded, 0);
  } catch (error) {
    if (!(error instanceof AgentError) || error.code !== "locked") throw error;
    const { syncByDaemon } = await import("./common/running-daemon.ts");
    const { api } = loaded.config;
    const socketPath = api.enabled ? apiSocketPath(host.places, api) : undefined;
    const done = await syncByDaemon(host.places.runtime, socketPath);
    if (done === undefined) return assembleSync(host, loaded);
    return report(done.result, done.errors, exposedFiles(loaded.config.rules, host.places.home));
  }
}

async function report(
  { changed, unchanged, failed, missing }: CycleResult,
  rules: Readonly<Record<string, { readonly error: string | null }>>,
  exposed: Promise<readonly ExposedFile[]>,
): Promise<number> {
  for (const { warning } of await exposed) noteLine(`warning: ${warning}`);
  for (const rule of failed) noteLine(`${rule}: ${rules[rule]?.error ?? "failed"}`);
  const absent = missing.map(({ rule, key }) => `${key} (rule ${rule})`).join(", ");
  const more = missing.length === 0 ? "" : `, ${missing.length} missing: ${absent}`;
  printLine(`${changed.length} changed, ${unchanged.length} unchanged, ${failed.length} failed${more}`);
  return failed.length === 0 ? 0 : 1;
}
