import { noteLine, printJson, printLine, printText } from "@devplat/base/terminal";
import { assemblePreview } from "../../assemble/index.ts";
import type { Host } from "../../host.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { AgentError } from "../../errors.ts";
import { diffOf } from "../../sync/edit/large-files.ts";
import { untilStopped } from "../common/signals.ts";

export interface DryRunOptions {
  /** Show values: on a terminal only, so that they end in no log. Default false. */
  readonly reveal?: boolean;
  /** The rule whose file is shown. Default: all. */
  readonly only?: string;
  /** One JSON document instead of the text; values stay masked. Default false. */
  readonly json?: boolean;
}

/**
 * Prints what a cycle would change, every value masked, and leaves no trace: no file, folder, state, lock, login or
 * command. Exit code 1 without a valid token, and if a rule would fail.
 */
export async function dryRun(
  host: Host,
  loaded: LoadedConfig,
  { reveal = false, only, json = false }: DryRunOptions,
): Promise<number> {
  if (reveal && !process.stdout.isTTY) {
    throw new AgentError("usage", "--reveal shows values on a terminal only, and this is none");
  }
  const parts = await assemblePreview(host, loaded);
  const stop = untilStopped();
  try {
    await parts.signIn.ensure(stop.signal);
    const { files: previewed, failures, missing } = await parts.engine.preview(stop.signal);
    const changes: { path: string; rules: readonly string[]; diff: string }[] = [];
    for (const file of previewed) {
      if (only !== undefined && !file.rules.includes(only)) continue;
      const diff = await diffOf(file, reveal && !json, stop.signal);
      if (diff !== "") changes.push({ path: file.path, rules: file.rules, diff });
    }
    const concerned = ([rule]: readonly [string, string]): boolean => only === undefined || rule === only;
    const absent = [...missing].filter(concerned);
    const failed = [...failures].filter(concerned);
    if (json) {
      const shown = { changes, missing: Object.fromEntries(absent), failed: Object.fromEntries(failed) };
      printJson(shown);
    } else {
      for (const { diff } of changes) printText(diff);
      for (const [rule, message] of absent) printLine(`${rule}: ${message}`);
      for (const [rule, message] of failed) noteLine(`${rule}: ${message}`);
      const files = changes.length === 1 ? "1 file" : `${changes.length} files`;
      printLine(`${files} would change; nothing was written`);
    }
    return failed.length === 0 ? 0 : 1;
  } finally {
    stop.release();
    await parts.close();
  }
}
