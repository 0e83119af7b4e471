import { appendFile, mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ifExists } from "@devplat/base";
import { AgentError } from "../../errors.ts";
import type { OfferedKey } from "./signing-key.ts";

/** A principal that no reader takes for a pattern or a list (ssh-keygen(1), ALLOWED SIGNERS). */
const PLAIN_PRINCIPAL = /^[^\s"',*?!#]+$/;

/** The line that makes git believe signatures of a key. @throws AgentError `usage` for an e-mail address that cannot be in it */
export function signerLine(email: string | undefined, { line, comment }: OfferedKey): string {
  if (email === undefined || !PLAIN_PRINCIPAL.test(email)) {
    const fault =
      email === undefined ? "is not set" : "has characters that cannot be in a file of allowed signers";
    throw new AgentError("usage", `Cannot name the signer: user.email of git ${fault}`, {
      hint: "Set it with 'git config --global user.email'.",
    });
  }
  // A comment comes from the store or another agent.
  const plain = comment.replaceAll(/\p{Cc}+/gu, " ");
  return `${email} namespaces="git" ${line} ${plain}`.trim();
}

/** Adds a signer to the file, unless the file has the key. Its other lines stay. @returns whether it was added */
export async function addSigner(file: string, signer: string, { line }: OfferedKey): Promise<boolean> {
  const before = (await ifExists(readFile(file, "utf8"))) ?? "";
  const isThere = before.split("\n").some((each) => !each.startsWith("#") && each.includes(line));
  if (isThere) return false;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const separator = before === "" || before.endsWith("\n") ? "" : "\n";
  await appendFile(file, `${separator}${signer}\n`);
  return true;
}
