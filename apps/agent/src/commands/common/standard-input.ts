import { AgentError } from "../../errors.ts";

/**
 * Standard input without one trailing newline; undefined if it is not UTF-8. A byte order mark belongs to the text.
 * @param maxBytes of the text without its newline
 * @param subject of the error for a longer text, such as "the text"
 * @throws AgentError `usage`
 */
export async function readStandardInput(maxBytes: number, subject: string): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    // One more for the newline. What is longer need not be read to its end.
    if (length > maxBytes + 1)
      throw new AgentError("usage", `${subject} is longer than ${maxBytes / 1024} KiB`);
  }
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return decoder.decode(Buffer.concat(chunks)).replace(/\n$/, "");
  } catch {
    return undefined;
  }
}
