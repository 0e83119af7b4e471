import { AgentError } from "../../errors.ts";
import { lastErrorLine, runTool, type ProgramResult } from "../../platform/run-tool.ts";

export type GitScope = "global" | "local";

/** Exit code of `git config --get` for a key that is not set. */
const NOT_SET = 1;
/** Exit code of `git config --unset` for a key that is not set. */
const NOTHING_TO_UNSET = 5;

/** Git's configuration, read and changed by git itself. */
export class GitConfig {
  readonly #scope: GitScope;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(scope: GitScope, environment: NodeJS.ProcessEnv) {
    this.#scope = scope;
    this.#environment = environment;
  }

  /** The value that git uses here, from any file. Undefined if none is set. */
  async effective(key: string): Promise<string | undefined> {
    return valueOf(await this.#git(["--get", key]), key);
  }

  /** The same for a path, with `~` expanded. */
  async effectivePath(key: string): Promise<string | undefined> {
    return valueOf(await this.#git(["--type=path", "--get", key]), key);
  }

  /** The value in the file of this scope. */
  async own(key: string): Promise<string | undefined> {
    return valueOf(await this.#git([`--${this.#scope}`, "--get", key]), key);
  }

  /** @throws AgentError `usage` if git does not take it */
  async set(key: string, value: string): Promise<void> {
    const result = await this.#git([`--${this.#scope}`, key, value]);
    if (result.code !== 0) throw refused(`Cannot set ${key}`, result);
  }

  async unset(key: string): Promise<void> {
    const result = await this.#git([`--${this.#scope}`, "--unset", key]);
    if (result.code !== 0 && result.code !== NOTHING_TO_UNSET) throw refused(`Cannot unset ${key}`, result);
  }

  /** Sets a key, or unsets it. */
  async put(key: string, value: string | undefined): Promise<void> {
    await (value === undefined ? this.unset(key) : this.set(key, value));
  }

  async removeSection(section: string): Promise<void> {
    const result = await this.#git([`--${this.#scope}`, "--remove-section", section]);
    if (result.code !== 0) throw refused(`Cannot remove the section ${section}`, result);
  }

  #git(args: readonly string[]): Promise<ProgramResult> {
    return runTool("git", ["config", ...args], { environment: this.#environment });
  }
}

/** @throws AgentError `usage` if git cannot read its configuration, such as outside a repository */
function valueOf(result: ProgramResult, key: string): string | undefined {
  if (result.code === 0) return result.stdout.replace(/\n$/, "");
  if (result.code === NOT_SET && result.stderr === "") return undefined;
  throw refused(`Cannot read ${key}`, result);
}

function refused(action: string, result: ProgramResult): AgentError {
  return new AgentError("usage", `${action} in git's configuration: ${lastErrorLine(result)}`);
}
