import { flagOf, printResult, printTable } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import type { Invocation, RunCommand } from "./common/command.ts";
import { AgentError } from "../errors.ts";
import { enrolAtTerminal } from "./enrol/conversation.ts";
import { assembleStore } from "../assemble/store.ts";
import { enrolmentRunner } from "../assemble/index.ts";
import type { Host } from "../host.ts";
import type { EnrolmentRunner } from "../enrol/runner.ts";
import { openContext } from "./common/context.ts";
import { signalDaemon } from "./common/daemon-process.ts";
import { untilStopped } from "./common/signals.ts";

/** Every configured enrolment and its state. */
export const list: RunCommand = (invocation) =>
  withEnrolments(invocation, async (runner, signal) => {
    await runner.look(signal);
    const enrolments = runner.list();
    printResult(invocation.options, { enrolments }, () =>
      printTable(
        ["KEY", "ENGINE", "STATUS", "DESCRIPTION"],
        enrolments.map(({ key, engine, state, status, description }) => [
          key,
          engine,
          state === "skipped" ? "skipped" : status,
          description,
        ]),
        "No enrolments.",
      ),
    );
    return 0;
  });

/** Runs one enrolment on the terminal. */
export const run: RunCommand = (invocation) =>
  withEnrolments(invocation, async (runner, signal, _tell, host) => {
    const [key = ""] = invocation.positionals;
    await runner.look(signal);
    const current = runner.list().find((enrolment) => enrolment.key === key);
    if (current?.state === "complete" && current.interactive && !flagOf(invocation.options, "again")) {
      throw new AgentError("enrolment_state", `the enrolment ${key} is complete`, {
        hint: "Use --again to replace the credential.",
      });
    }
    if (invocation.flags.dryRun) {
      runner.prompt(key);
      printResult(invocation.options, { key, outcome: "would run" }, () =>
        printLine(`the enrolment ${key} would run`),
      );
      return 0;
    }
    // Given up while the store was looked at.
    if (signal.aborted) throw new AgentError("enrolment_cancelled", "the enrolment was ended");
    await enrolAtTerminal(runner, key, host.environment, signal);
    printResult(invocation.options, { key, outcome: "stored" }, () => printLine(`stored ${key}`));
    return 0;
  });

/** Skips an enrolment, although there is no credential. */
export const skip: RunCommand = (invocation) =>
  decide(invocation, ["skip", "skipped"], async (runner, key) => runner.skip(key));

/** Reverts a skip, so that the enrolment is offered again. */
export const reset: RunCommand = (invocation) =>
  decide(invocation, ["reset", "reset"], async (runner, key) => runner.reset(key));

async function decide(
  invocation: Invocation,
  [verb, done]: readonly [verb: string, done: string],
  act: (runner: EnrolmentRunner, key: string) => Promise<void>,
): Promise<number> {
  return withEnrolments(invocation, async (runner, signal, tell) => {
    const { positionals, flags, options } = invocation;
    const [key = ""] = positionals;
    await runner.look(signal);
    // Unknown ones are refused in a dry run too.
    runner.prompt(key);
    if (!flags.dryRun) {
      await act(runner, key);
      tell();
    }
    const outcome = flags.dryRun ? `would ${verb}` : done;
    printResult(options, { key, outcome }, () => printLine(`${outcome} ${key}`));
    return 0;
  });
}

/**
 * Runs an action on the enrolments, signed in, after one look at what is there. A running daemon is told when a
 * credential was stored or `tell` was called.
 */
async function withEnrolments(
  invocation: Invocation,
  action: (runner: EnrolmentRunner, signal: AbortSignal, tell: () => void, host: Host) => Promise<number>,
): Promise<number> {
  const { host, loaded } = await openContext(invocation);
  const parts = await assembleStore(host, loaded, !invocation.flags.dryRun);
  const stop = untilStopped();
  let isNews = false;
  const tell = (): void => void (isNews = true);
  try {
    await parts.signIn.ensure(stop.signal);
    const runner = enrolmentRunner(host, loaded, parts, tell);
    const code = await action(runner, stop.signal, tell, host);
    if (isNews) await signalDaemon(host);
    return code;
  } finally {
    stop.release();
    await parts.close();
  }
}
