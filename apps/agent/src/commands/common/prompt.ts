import { ask as askOnTerminal } from "@devplat/cli/prompt";
import { AgentError } from "../../errors.ts";

/**
 * Asks on the terminal.
 * @param options `hidden`: the typed characters are not shown; `signal`: ends the question
 * @throws AgentError `usage` without a terminal
 */
export async function ask(
  question: string,
  options: { readonly hidden: boolean; readonly signal?: AbortSignal },
): Promise<string> {
  return askOnTerminal(question, { ...options, failure: (reason) => new AgentError("usage", reason) });
}
