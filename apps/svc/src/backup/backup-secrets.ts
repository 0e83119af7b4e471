import { readFile } from "node:fs/promises";
import { messageOf, Secret, systemCode } from "@devplat/base";
import { ask } from "@devplat/cli/prompt";
import { SvcError } from "../errors.ts";
import { MIN_PASSPHRASE_LENGTH, type Protection, type Unlocking } from "./encryption.ts";

/** Variable with the passphrase of backups. It is never an argument, which other users of the machine can see. */
const PASSPHRASE_VARIABLE = "SVC_BACKUP_PASSPHRASE";

export interface SecretSources {
  /** Recipients of age. */
  readonly recipients: readonly string[];
  /** Files with a recipient in each line. */
  readonly recipientFiles: readonly string[];
  /** Files with identities of age, as age-keygen writes them. */
  readonly identityFiles: readonly string[];
  /** File whose first line is the passphrase. */
  readonly passphraseFile: string | undefined;
  readonly environment: NodeJS.ProcessEnv;
}

/** How a new backup is encrypted. @throws SvcError `usage`, `backup_failed` */
export async function protectionOf(sources: SecretSources): Promise<Protection> {
  const fromFiles = await Promise.all(
    sources.recipientFiles.map(async (path) => keyLines(path, "recipients")),
  );
  const recipients = [...sources.recipients, ...fromFiles.flat()];
  const isForRecipients = sources.recipients.length + sources.recipientFiles.length > 0;
  if (isForRecipients && sources.passphraseFile !== undefined) {
    throw usage("A backup is encrypted for recipients or to a passphrase, not both");
  }
  if (isForRecipients) {
    if (recipients.length === 0) throw usage("The files of recipients have none");
    return { kind: "recipients", recipients };
  }
  const passphrase = (await givenPassphrase(sources)) ?? (await askTwice());
  if (passphrase.reveal().length < MIN_PASSPHRASE_LENGTH) {
    throw usage(`The passphrase of a backup must have ${MIN_PASSPHRASE_LENGTH} characters or more`);
  }
  return { kind: "passphrase", passphrase };
}

/** How a backup is opened. A passphrase is asked for only if the file needs one. @throws SvcError `usage`, `backup_failed` */
export async function unlockingOf(sources: SecretSources): Promise<Unlocking> {
  if (sources.identityFiles.length === 0) {
    const passphrase = await givenPassphrase(sources);
    return {
      kind: "passphrase",
      passphrase: async () => passphrase ?? new Secret(await ask("Passphrase of the backup: ", HIDDEN)),
    };
  }
  const files = await Promise.all(sources.identityFiles.map(async (path) => keyLines(path, "identities")));
  const lines = files.flat();
  if (lines.length === 0 || lines.some((line) => !/^AGE-SECRET-KEY-[0-9A-Z-]+$/.test(line))) {
    throw usage("A file of identities must have lines that begin with AGE-SECRET-KEY-");
  }
  return { kind: "identities", identities: lines.map((line) => new Secret(line)) };
}

const HIDDEN = {
  hidden: true,
  failure: (reason: string) =>
    new SvcError("usage", `Cannot ask for the passphrase of the backup: ${reason}`, {
      hint: `Give --passphrase-file, or set ${PASSPHRASE_VARIABLE}.`,
    }),
} as const;

async function givenPassphrase({ passphraseFile, environment }: SecretSources): Promise<Secret | undefined> {
  if (passphraseFile !== undefined) {
    const [line = ""] = (await readText(passphraseFile, "passphrase")).split(/\r?\n/, 1);
    if (line === "") throw usage(`The first line of "${passphraseFile}" is empty: it must be the passphrase`);
    return new Secret(line);
  }
  const value = environment[PASSPHRASE_VARIABLE];
  return value === undefined || value === "" ? undefined : new Secret(value);
}

async function askTwice(): Promise<Secret> {
  const first = await ask("Passphrase for the backup: ", HIDDEN);
  if (first !== (await ask("The same again: ", HIDDEN))) throw usage("The two passphrases are different");
  return new Secret(first);
}

/** Lines that are not comments. */
async function keyLines(path: string, what: string): Promise<readonly string[]> {
  const lines = (await readText(path, what)).split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}

async function readText(path: string, what: string): Promise<string> {
  try {
    // Editors of Windows begin a file with a byte order mark, which nobody can type.
    return (await readFile(path, "utf8")).replace(/^\uFEFF/, "");
  } catch (error) {
    throw new SvcError(
      "usage",
      `Cannot read the ${what} file "${path}": ${systemCode(error) ?? messageOf(error)}`,
    );
  }
}

function usage(message: string): SvcError {
  return new SvcError("usage", message);
}
