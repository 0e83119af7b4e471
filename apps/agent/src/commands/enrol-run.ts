import { Secret } from "@devplat/base";
import { noteLine, noteText, printLine, visible } from "@devplat/base/terminal";
import { DesktopBrowser } from "../desktop/browser.ts";
import type { EnrolmentPrompt, EnrolmentRunner } from "../enrol/runner.ts";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { withEnrolments } from "./enrolment-session.ts";
import { ask } from "./prompt.ts";

/** Runs one enrolment on the terminal. */
export const run: RunCommand = (invocation) =>
  withEnrolments(invocation, async (runner, signal, _tell, host) => {
    const [key = ""] = invocation.positionals;
    await runner.look(signal);
    const current = runner.list().find((enrolment) => enrolment.key === key);
    if (current?.state === "complete" && current.interactive && invocation.options["again"] !== true) {
      throw new AgentError("enrolment_state", `the enrolment ${key} is complete`, {
        hint: "Use --again to replace the credential.",
      });
    }
    if (invocation.flags.dryRun) {
      runner.prompt(key);
      printLine(`the enrolment ${key} would run`);
      return 0;
    }
    // Given up while the store was looked at.
    if (signal.aborted) throw new AgentError("enrolment_cancelled", "the enrolment was ended");
    const done = runner.start(key);
    signal.addEventListener("abort", () => void runner.cancel(key), { once: true });
    await converse(runner, key, done, host.environment);
    await done;
    printLine(`stored ${key}`);
    return 0;
  });

/** Shows and asks what the engine wants, until it has ended. */
async function converse(
  runner: EnrolmentRunner,
  key: string,
  done: Promise<void>,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const life = new AbortController();
  let wake = (): void => undefined;
  const end = (): void => {
    life.abort();
    wake();
  };
  done.then(end, end);
  const release = runner.onChange(() => wake());
  let shown: EnrolmentPrompt = {};
  try {
    while (!life.signal.aborted) {
      const prompt = runner.prompt(key);
      if (prompt !== shown) {
        shown = prompt;
        if (prompt.visit !== undefined) show(prompt.visit, environment);
        if (prompt.form !== undefined) await fill(runner, key, prompt.form);
        continue;
      }
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } catch (error) {
    await runner.cancel(key);
    throw error;
  } finally {
    release();
  }
}

function show({ url, code }: NonNullable<EnrolmentPrompt["visit"]>, environment: NodeJS.ProcessEnv): void {
  const typed = code === undefined ? "" : `and enter the code ${visible(code)}\n`;
  noteText(`Open ${visible(url)}\n${typed}`);
  if (process.stderr.isTTY) void new DesktopBrowser(environment).open(url);
}

async function fill(
  runner: EnrolmentRunner,
  key: string,
  { title, fields }: NonNullable<EnrolmentPrompt["form"]>,
): Promise<void> {
  if (title !== "") noteLine(title);
  const values = new Map<string, Secret>();
  for (const { name, help, secret, confirm, fault } of fields) {
    if (help !== "") noteLine(help);
    for (;;) {
      const value = await ask(`${name}: `, { hidden: secret });
      const wrong = fault(value);
      const differs =
        wrong === undefined && confirm && value !== (await ask(`${name} again: `, { hidden: secret }));
      if (wrong === undefined && !differs) {
        values.set(name, new Secret(value));
        break;
      }
      noteLine(wrong ?? "the two are not the same");
    }
  }
  runner.answer(key, values);
}
