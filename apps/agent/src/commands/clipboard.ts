import { MAX_CLIPBOARD_BYTES } from "../desktop/clipboard.ts";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./command.ts";
import { preferPeers } from "./peer-action.ts";

/** Puts a text on the clipboard in front of the user: on the peers', else on this host's. */
export const run: RunCommand = async (invocation) => {
  const [argument = "-"] = invocation.positionals;
  const text = argument === "-" ? await readInput() : fromArgument(argument);
  return await preferPeers(invocation, "clipboard", new Map([["text", text]]));
};

/** Standard input without one trailing newline; undefined if it is not UTF-8. A byte order mark belongs to the text. */
async function readInput(): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    // One more for the newline. What is longer need not be read to its end.
    if (length > MAX_CLIPBOARD_BYTES + 1) throw new AgentError("usage", "the text is longer than 64 KiB");
  }
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return decoder.decode(Buffer.concat(chunks)).replace(/\n$/, "");
  } catch {
    return undefined;
  }
}

/** The system hands over bytes that are no UTF-8 as replacement characters: such a text would arrive as another one. */
function fromArgument(argument: string): string {
  if (!argument.includes("\uFFFD")) return argument;
  throw new AgentError("usage", "the text is not valid UTF-8, or holds a replacement character", {
    hint: "Standard input takes every valid text as it is.",
  });
}
