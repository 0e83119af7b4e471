import { join } from "node:path";
import { flagOf, printResult, textOf } from "@devplat/cli";
import { noteLine, printLine } from "@devplat/base/terminal";
import { BRAND } from "../../brand.ts";
import { AgentError } from "../../errors.ts";
import { sshAgentStatusSchema, type SshAgentStatus } from "../../ssh-agent-view.ts";
import type { Invocation, RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";
import { DaemonRequests } from "../common/daemon-request.ts";
import { agentSocket } from "./agent-socket.ts";
import { addSigner, signerLine } from "./allowed-signers.ts";
import { GitConfig, type GitScope } from "./git-config.ts";
import { chooseKey, offeredKeys } from "./signing-key.ts";
import { trySignature } from "./trial-signature.ts";

const FORMAT = "gpg.format";
const SIGNING_KEY = "user.signingkey";
const SIGNERS_FILE = "gpg.ssh.allowedSignersFile";
const SIGNING_PROGRAM = "gpg.ssh.program";
/** The keys that are changed. */
const CHANGED = [FORMAT, SIGNING_KEY, SIGNERS_FILE, SIGNING_PROGRAM] as const;
/** The program that signs with keys of an SSH agent. */
const OPENSSH_PROGRAM = "ssh-keygen";
/** Section of git's configuration with what was there before. */
const RECORD = "daemonsigning";
const RECORDED_KEY = `${RECORD}.key`;
/** Git's form of a key that is not in a file. */
const LITERAL = "key::";
/** File of allowed signers in the folder of the configuration, if git has none. */
const OWN_SIGNERS_FILE = "allowed_signers";

/** Makes git sign with a key of the SSH agent, after a signature was tried. */
export const enable: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const { environment, places } = host;
  const scope = scopeOf(invocation);
  const config = new GitConfig(scope, environment);
  const socket = agentSocket(host, loaded.config);
  const key = chooseKey(
    await offeredKeys(socket, environment),
    textOf(invocation.options, "key"),
    await readStatus(new DaemonRequests(host, loaded.config)),
  );
  const signingKey = LITERAL + key.line;
  const other = await otherSetup(config, signingKey);
  if (other !== undefined && !flagOf(invocation.options, "force")) {
    throw new AgentError("confirmation_needed", `Git signs in another way: ${other}`, {
      hint: `--force replaces it, and '${BRAND.command} git-signing disable' restores it.`,
    });
  }
  const signer = signerLine(await config.effective("user.email"), key);
  const file = (await config.effectivePath(SIGNERS_FILE)) ?? join(places.configFolder, OWN_SIGNERS_FILE);
  if (invocation.flags.dryRun) {
    printResult(invocation.options, { outcome: "would enable", key: key.fingerprint }, () =>
      printLine(`would sign with ${key.comment} (${key.fingerprint}); nothing was changed`),
    );
    return 0;
  }
  const program = (await config.effective(SIGNING_PROGRAM)) === undefined ? undefined : OPENSSH_PROGRAM;
  await trySignature({ signingKey, signer, program, socket, environment });
  await addSigner(file, signer, key);
  await remember(config, signingKey);
  await config.set(FORMAT, "ssh");
  await config.set(SIGNING_KEY, signingKey);
  await config.set(SIGNERS_FILE, file);
  if (program !== undefined) await config.set(SIGNING_PROGRAM, program);
  const result = { outcome: "enabled", scope, key: key.fingerprint, allowed_signers_file: file };
  printResult(invocation.options, result, () => {
    printLine(`Git signs with ${key.comment} (${key.fingerprint}). A signature was made and verified.`);
    printLine(`Allowed signers: ${file}`);
    printLine("'git commit -S' signs; 'git config commit.gpgsign true' signs every commit.");
  });
  await noteOverrides(config, signingKey);
  if (environment["SSH_AUTH_SOCK"] !== socket)
    noteLine(
      `SSH_AUTH_SOCK of this shell is not the socket of the daemon. Run: eval "$(${BRAND.command} ssh-env)"`,
    );
  return 0;
};

/** Restores git's configuration as it was before. */
export const disable: RunCommand = async (invocation) => {
  const { host } = await openContext(invocation);
  const config = new GitConfig(scopeOf(invocation), host.environment);
  const recorded = await config.own(RECORDED_KEY);
  if (recorded === undefined) {
    printResult(invocation.options, { outcome: "unchanged" }, () =>
      printLine(`Git does not sign by '${BRAND.command} git-signing' here; nothing was changed.`),
    );
    return 0;
  }
  const found = await config.own(SIGNING_KEY);
  if (found !== recorded && !flagOf(invocation.options, "force")) {
    throw new AgentError("confirmation_needed", `${SIGNING_KEY} was changed after 'git-signing enable'`, {
      hint: "--force replaces it by the value from before.",
    });
  }
  if (invocation.flags.dryRun) {
    printResult(invocation.options, { outcome: "would disable" }, () =>
      printLine("would disable; nothing was changed"),
    );
    return 0;
  }
  for (const key of CHANGED) await config.put(key, await config.own(recordOf(key)));
  await config.removeSection(RECORD);
  printResult(invocation.options, { outcome: "disabled" }, () =>
    printLine(
      "Git's configuration is as it was. The file of allowed signers was kept, for commits that are signed.",
    ),
  );
  return 0;
};

/** Shows how git signs, and whether the SSH agent offers the key. */
export const status: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const { environment } = host;
  const config = new GitConfig(scopeOf(invocation), environment);
  const signingKey = await config.effective(SIGNING_KEY);
  const isOurs = (await config.own(RECORDED_KEY)) !== undefined;
  const socket = agentSocket(host, loaded.config);
  const keys = await offeredKeys(socket, environment);
  const offered = keys.find(({ line }) => signingKey === LITERAL + line);
  const result = {
    enabled: isOurs,
    format: (await config.effective(FORMAT)) ?? "openpgp",
    signing_key: signingKey ?? null,
    offered: offered !== undefined,
    allowed_signers_file: (await config.effectivePath(SIGNERS_FILE)) ?? null,
    every_commit: (await config.effective("commit.gpgsign")) === "true",
    socket_in_use: environment["SSH_AUTH_SOCK"] === socket,
  };
  printResult(invocation.options, result, () => {
    printLine(`Set up by '${BRAND.command} git-signing': ${yesNo(result.enabled)}`);
    printLine(`Format:               ${result.format}`);
    printLine(`Key:                  ${result.signing_key ?? "not set"}`);
    printLine(`Offered by the agent: ${yesNo(result.offered)}`);
    printLine(`Allowed signers:      ${result.allowed_signers_file ?? "not set"}`);
    printLine(`Signs every commit:   ${yesNo(result.every_commit)}`);
    printLine(`SSH_AUTH_SOCK is ours: ${yesNo(result.socket_in_use)}`);
  });
  return 0;
};

function scopeOf({ options }: Invocation): GitScope {
  return flagOf(options, "local") ? "local" : "global";
}

/** Undefined if the daemon cannot be reached: the keys of the socket are then all that is known. */
async function readStatus(requests: DaemonRequests): Promise<SshAgentStatus | undefined> {
  try {
    return sshAgentStatusSchema.parse(await requests.get("/api/v1/ssh-agent"));
  } catch (error) {
    if (error instanceof AgentError) return undefined;
    throw error;
  }
}

/** Another way in which git signs now, as a setting of it. Undefined if there is none. */
async function otherSetup(config: GitConfig, signingKey: string): Promise<string | undefined> {
  const format = await config.effective(FORMAT);
  if (format !== undefined && format !== "ssh") return `${FORMAT} is ${format}`;
  const key = await config.effective(SIGNING_KEY);
  const recorded = await config.own(RECORDED_KEY);
  if (key !== undefined && key !== signingKey && key !== recorded) return `${SIGNING_KEY} is ${key}`;
  const program = await config.effective(SIGNING_PROGRAM);
  if (program !== undefined && program !== OPENSSH_PROGRAM) return `${SIGNING_PROGRAM} is ${program}`;
  for (const always of ["commit.gpgsign", "tag.gpgsign"]) {
    if (key === undefined && (await config.effective(always)) === "true") return `${always} is true`;
  }
  return undefined;
}

/** Keeps the values from before in git's configuration. Those of an earlier `enable` stay. */
async function remember(config: GitConfig, signingKey: string): Promise<void> {
  if ((await config.own(RECORDED_KEY)) === undefined) {
    for (const key of CHANGED) {
      const value = await config.own(key);
      if (value !== undefined) await config.set(recordOf(key), value);
    }
  }
  await config.set(RECORDED_KEY, signingKey);
}

/** The key of the record for a key, such as `daemonsigning.gpgformat`. */
function recordOf(key: (typeof CHANGED)[number]): string {
  return `${RECORD}.${key.replaceAll(".", "").toLowerCase()}`;
}

/** Another file of git's configuration can come after the changed one. */
async function noteOverrides(config: GitConfig, signingKey: string): Promise<void> {
  if ((await config.effective(SIGNING_KEY)) === signingKey && (await config.effective(FORMAT)) === "ssh")
    return;
  noteLine(
    "Another file of git's configuration overrides this here. 'git config --show-origin --get-all user.signingkey' shows it.",
  );
}

function yesNo(value: boolean): string {
  return value ? "yes" : "no";
}
