import { flagOf, printResult } from "@devplat/cli";
import { printLine, printText } from "@devplat/base/terminal";
import { BRAND } from "../../brand.ts";
import { AgentError } from "../../errors.ts";
import { sshAgentStatusSchema } from "../../ssh-agent-view.ts";
import type { Invocation, RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";
import { DaemonRefusal, DaemonRequests } from "../common/daemon-request.ts";
import { ask } from "../common/prompt.ts";
import { readStandardInput } from "../common/standard-input.ts";
import { agentSocket } from "./agent-socket.ts";
import { LOCKED_LINE, keyLines } from "./ssh-agent-text.ts";

const STATUS_PATH = "/api/v1/ssh-agent";
/** The daemon gives up before. In milliseconds. */
const REFRESH_TIMEOUT_MS = 15_000;
/** Opening a key takes up to some seconds, because its passphrase is stretched on purpose. In milliseconds. */
const UNLOCK_TIMEOUT_MS = 60_000;
/** Longest passphrase from standard input, in bytes. */
const MAX_PASSPHRASE_BYTES = 1024;

/** The keys of the SSH agent, by source. The daemon asks the store for them first. */
export const list: RunCommand = async (invocation) => {
  const { requests } = await open(invocation);
  const status = sshAgentStatusSchema.parse(
    await requests.change(`${STATUS_PATH}/refresh`, { timeoutMs: REFRESH_TIMEOUT_MS }),
  );
  printResult(invocation.options, status, () => printText(`${keyLines(status).join("\n")}\n`));
  return 0;
};

/** Opens a key with its passphrase, from the terminal or from standard input. */
export const unlock: RunCommand = async (invocation) => {
  const { requests } = await open(invocation);
  const [name = ""] = invocation.positionals;
  if (invocation.flags.dryRun) {
    printResult(invocation.options, { key: name, outcome: "would unlock" }, () =>
      printLine(`would unlock ${name}`),
    );
    return 0;
  }
  const unlocking = (body: object): Promise<unknown> =>
    requests.change(`${STATUS_PATH}/keys/unlock`, { body, timeoutMs: UNLOCK_TIMEOUT_MS });
  try {
    // Nobody types a passphrase for a key that does not exist.
    await unlocking({ name });
    await unlocking({ name, passphrase: await passphraseFor(name, invocation) });
  } catch (error) {
    if (!(error instanceof DaemonRefusal) || error.problem !== "key_unknown") throw error;
    throw new AgentError("daemon_refused", error.message, {
      hint: `'${BRAND.command} keys' lists the keys. Name one by its path, comment or fingerprint.`,
    });
  }
  printResult(invocation.options, { key: name, outcome: "unlocked" }, () => printLine(`unlocked ${name}`));
  return 0;
};

/** Shows the daemon's keys again that `ssh-add -D` has hidden. */
export const show: RunCommand = async (invocation) => {
  const { requests } = await open(invocation);
  const { dryRun } = invocation.flags;
  if (!dryRun) await requests.change(`${STATUS_PATH}/keys/show`);
  const locked = !dryRun && sshAgentStatusSchema.parse(await requests.get(STATUS_PATH)).locked;
  const outcome = dryRun ? "would be shown" : "shown";
  printResult(invocation.options, { outcome, locked }, () => {
    if (locked) printLine(`no key is shown: ${LOCKED_LINE}`);
    else printLine(dryRun ? "the daemon's keys would be shown" : "the daemon's keys are shown");
  });
  return 0;
};

/** @throws AgentError `not_configured` while the SSH agent is off */
async function open(invocation: Invocation): Promise<{ requests: DaemonRequests }> {
  const { host, loaded } = await openContext(invocation);
  agentSocket(host, loaded.config);
  return { requests: new DaemonRequests(host, loaded.config) };
}

async function passphraseFor(name: string, { options }: Invocation): Promise<string> {
  const fromInput = flagOf(options, "passphrase-stdin");
  if (!fromInput && !process.stdin.isTTY) {
    throw new AgentError("usage", `Cannot ask for the passphrase of ${name}: there is no terminal`, {
      hint: "Use --passphrase-stdin.",
    });
  }
  const passphrase = fromInput
    ? await readStandardInput(MAX_PASSPHRASE_BYTES, "the passphrase")
    : await ask(`Passphrase of ${name}: `, { hidden: true });
  if (passphrase === undefined || passphrase === "")
    throw new AgentError(
      "usage",
      passphrase === "" ? "the passphrase is empty" : "the passphrase is not UTF-8",
    );
  return passphrase;
}
