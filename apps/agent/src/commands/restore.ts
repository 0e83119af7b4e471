import { flagOf } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import { BRAND } from "../brand.ts";
import type { LoadedConfig } from "../config/load.ts";
import { AgentError } from "../errors.ts";
import type { Host } from "../host.ts";
import { Backups } from "../sync/target/backups.ts";
import { InPlaceJournal } from "../sync/target/in-place.ts";
import { WriterLock } from "../sync/lock.ts";
import { PausedRules } from "../sync/paused-rules.ts";
import { TargetPolicy } from "../sync/target/target-policy.ts";
import { writeTarget } from "../sync/target/write-target.ts";
import type { RunCommand } from "./common/command.ts";
import { openContext } from "./common/context.ts";
import { freshCycle } from "./common/running-daemon.ts";

/** Puts back what a rule's file held before the rule first touched it. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const [name = ""] = invocation.positionals;
  const rule = loaded.config.rules.find((candidate) => candidate.name === name);
  // Rules that are no longer configured still have their backups; the name becomes a path, so it is checked.
  if (rule === undefined && !/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) throw nothingToRestore(name);
  const { places } = host;
  const backup = (await new Backups(places.state).list(name)).at(-1);
  if (backup === undefined) throw nothingToRestore(name);
  const paused = await new PausedRules(places.state).read();
  const active = rule !== undefined && rule.enabled && !rule.paused && !paused.has(name);
  if (active && !flagOf(invocation.options, "force")) {
    throw new AgentError("confirmation_needed", `rule '${name}' is active and would write the file again`, {
      hint: `'${BRAND.command} rules pause ${name}' stops it; or use --force.`,
    });
  }
  if (invocation.flags.dryRun) {
    printLine(`would restore ${backup.path} as of ${backup.takenAt}`);
    return 0;
  }
  await using held = new AsyncDisposableStack();
  held.use(await asOnlyWriter(host, loaded));
  const targets = new TargetPolicy(places, loaded.config.sync.allowed_targets, loaded.sources);
  const target = await targets.resolve(backup.path);
  const request = {
    path: backup.path,
    target,
    merge: () => backup.content,
    mode: backup.mode,
    dirMode: 0o700,
  };
  const { changed } = await writeTarget(request, new InPlaceJournal(places.state));
  printLine(
    changed ? `restored ${backup.path} as of ${backup.takenAt}` : `${backup.path} is already as it was`,
  );
  return 0;
};

/**
 * The writer lock. A running daemon holds it all the time, but writes only the files of active rules. After one cycle
 * that begins now, it has no work under way for the other rules.
 */
async function asOnlyWriter(host: Host, loaded: LoadedConfig): Promise<Disposable> {
  const { state } = host.places;
  try {
    return await WriterLock.acquire(state, 0);
  } catch (error) {
    if (!(error instanceof AgentError) || error.code !== "locked") throw error;
    if ((await freshCycle(host, loaded)) === undefined) return await WriterLock.acquire(state);
    return { [Symbol.dispose]: () => undefined };
  }
}

function nothingToRestore(name: string): AgentError {
  return new AgentError("nothing_to_restore", `there is no backup for rule '${name}'`, {
    hint: `'${BRAND.command} rules list' shows the rules. A file that a rule has made itself has none.`,
  });
}
