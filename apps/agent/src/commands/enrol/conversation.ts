import { Secret } from "@devplat/base";
import { noteLine, noteText, visible } from "@devplat/base/terminal";
import { DesktopBrowser } from "../../desktop/browser.ts";
import type { EnrolmentPrompt } from "../../enrol/dialog.ts";
import type { EnrolmentRunner } from "../../enrol/runner.ts";
import { ask } from "../common/prompt.ts";
import { publicMessage } from "../../errors.ts";

/**
 * Runs one enrolment at the terminal: shows and asks what its engine wants, until it has ended. When the store does not
 * take the credential, asks whether to try again with it.
 * @throws AgentError `enrolment_unknown` | `enrolment_state` | `enrolment_cancelled` | `enrolment_failed` | `usage`, and
 *   other AppErrors of what the engine uses
 */
export async function enrolAtTerminal(
  runner: EnrolmentRunner,
  key: string,
  environment: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<void> {
  let done = runner.start(key);
  const cancel = (): void => void runner.cancel(key);
  signal.addEventListener("abort", cancel, { once: true });
  try {
    await converse(runner, key, done, environment);
    for (;;) {
      try {
        return await done;
      } catch (error) {
        if (runner.prompt(key).unsaved !== true || !(await wantsAnotherTry(error, signal))) throw error;
        done = runner.retry(key);
      }
    }
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

/** Asks whether to try again. False without a terminal. */
async function wantsAnotherTry(error: unknown, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  noteLine(`not stored: ${visible(publicMessage(error))}`);
  noteLine("What you entered is kept in memory for 15 minutes.");
  const answer = await ask("Try again to store it? [Y/n] ", { hidden: false, signal }).catch(() => "n");
  return /^(?:y(?:es)?)?$/i.test(answer.trim());
}

/** Shows what the engine reports and asks for its input, until it has ended. */
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
        if (prompt.form !== undefined) await fill(runner, key, prompt.form, life.signal);
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
  ended: AbortSignal,
): Promise<void> {
  if (title !== "") noteLine(title);
  const values = new Map<string, Secret>();
  for (const { name, help, secret, confirm, fault } of fields) {
    if (help !== "") noteLine(help);
    for (;;) {
      const value = await ask(`${name}: `, { hidden: secret, signal: ended });
      const wrong = fault(value);
      const differs =
        wrong === undefined &&
        confirm &&
        value !== (await ask(`${name} again: `, { hidden: secret, signal: ended }));
      if (wrong === undefined && !differs) {
        values.set(name, new Secret(value));
        break;
      }
      noteLine(wrong ?? "the two are not the same");
    }
  }
  runner.answer(key, values);
}
