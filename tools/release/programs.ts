import type { CommandTable } from "@devplat/cli";
import { PROGRAM as AGENT } from "../../apps/agent/src/commands/program.ts";
import { PROGRAM as SVC } from "../../apps/svc/src/commands/program.ts";

/** Facts about a program that its packages need. */
export interface ReleasedProgram {
  readonly table: CommandTable;
  /** One line, at most 80 characters, without the program's name. */
  readonly summary: string;
  /** For lists of packages. */
  readonly description: string;
  readonly files: readonly (readonly [path: string, purpose: string])[];
  readonly seeAlso: readonly string[];
  /** Debian's section. */
  readonly section: string;
  /** Programs of other packages that are of use. */
  readonly recommends: readonly string[];
  readonly suggests: readonly string[];
}

export const RELEASED: Readonly<Record<"svc" | "agent", ReleasedProgram>> = {
  svc: {
    table: SVC,
    summary: "caching git proxy in front of a code host",
    description: `Serves clones and fetches of listed repositories from local data, after the
code host (GitHub, Gitea or Forgejo) has allowed the caller to read them.
It also issues scoped tokens, and proxies the code host's API.`,
    files: [
      ["/etc/svc/svc.yaml", "Configuration of the system service."],
      ["/etc/svc/svc.env", "Secrets of the system service: the encryption key. Keep a copy elsewhere."],
      ["/var/lib/svc", "Database and cached repositories of the system service."],
    ],
    seeAlso: ["git(1)", "systemctl(1)", "/usr/share/doc/svc/docs/svc.md"],
    section: "vcs",
    recommends: ["ca-certificates"],
    suggests: ["git", "curl", "postgresql"],
  },
  agent: {
    table: AGENT,
    summary: "daemon that keeps local files in step with a secrets store",
    description: `Keeps .netrc, .npmrc, kubeconfig and other files in step with Vault, OpenBao
or a store on the machine itself. It changes only the values that it is
told to manage. It also serves an SSH agent and secrets as files.`,
    files: [
      ["~/.config/daemon/config.yaml", "Configuration of the daemon."],
      ["~/.local/share/daemon", "Embedded store and state of the daemon."],
    ],
    seeAlso: ["ssh-agent(1)", "systemctl(1)", "/usr/share/doc/agent/docs/agent.md"],
    section: "utils",
    recommends: ["ca-certificates"],
    suggests: ["fuse3", "openssh-client", "libnotify-bin", "xclip"],
  },
};
