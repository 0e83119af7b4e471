import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentError } from "../../errors.ts";
import { lastErrorLine, runTool, type ProgramResult } from "../../platform/run-tool.ts";

/** A signature can wait for a passphrase and for a confirmation, 30 s each. In milliseconds. */
const SIGN_TIMEOUT_MS = 70_000;
/** The empty tree of SHA-1 repositories. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

export interface TrialSettings {
  /** As for `user.signingkey`. */
  readonly signingKey: string;
  /** Line for the file of allowed signers. */
  readonly signer: string;
  /** Value for `gpg.ssh.program`. Undefined: the default. */
  readonly program: string | undefined;
  /** Socket of the SSH agent. */
  readonly socket: string;
  readonly environment: NodeJS.ProcessEnv;
}

/**
 * Has git sign a commit in a temporary repository, and verify it.
 * @throws AgentError `daemon_refused` if that fails
 */
export async function trySignature(settings: TrialSettings): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "agent-git-signing-"));
  try {
    const signers = join(folder, "allowed_signers");
    await writeFile(signers, `${settings.signer}\n`);
    const environment = {
      ...withoutGitVariables(settings.environment),
      SSH_AUTH_SOCK: settings.socket,
      GIT_AUTHOR_NAME: "agent",
      GIT_AUTHOR_EMAIL: "agent@localhost",
      GIT_COMMITTER_NAME: "agent",
      GIT_COMMITTER_EMAIL: "agent@localhost",
    };
    const git = (...args: string[]): Promise<ProgramResult> =>
      runTool("git", args, { environment, cwd: folder, timeoutMs: SIGN_TIMEOUT_MS });
    const options = [
      ["gpg.format", "ssh"],
      ["user.signingkey", settings.signingKey],
      ["gpg.ssh.allowedSignersFile", signers],
      ...(settings.program === undefined ? [] : [["gpg.ssh.program", settings.program]]),
    ].flatMap(([key, value]) => ["-c", `${key}=${value}`]);
    await insist(
      "make a temporary repository",
      git("init", "--quiet", "--bare", "--object-format=sha1", "."),
    );
    await insist("make a temporary repository", git("hash-object", "-w", "-t", "tree", "/dev/null"));
    const signed = await insist(
      "sign a commit",
      git(...options, "commit-tree", "-S", EMPTY_TREE, "-m", "test"),
    );
    await insist("verify a signed commit", git(...options, "verify-commit", signed.stdout.trim()));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function insist(action: string, running: Promise<ProgramResult>): Promise<ProgramResult> {
  const result = await running;
  if (result.code === 0) return result;
  throw new AgentError("daemon_refused", `git cannot ${action}: ${lastErrorLine(result)}`, {
    hint: "'agent status' shows why the SSH agent refused a signature. Git's configuration was not changed.",
  });
}

/** In a hook or an alias, git's own variables would lead to another repository. */
function withoutGitVariables(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("GIT_")));
}
