import { basename } from "node:path";

/** Kinds of shells that `agent ssh-env` writes for. `sh` is every POSIX shell, such as bash and zsh. */
export type ShellKind = "sh" | "fish" | "csh" | "powershell";

/** Names of shells, each with its kind. */
export const SHELL_KINDS: Readonly<Record<string, ShellKind>> = {
  sh: "sh",
  bash: "sh",
  zsh: "sh",
  dash: "sh",
  ksh: "sh",
  fish: "fish",
  csh: "csh",
  tcsh: "csh",
  powershell: "powershell",
  pwsh: "powershell",
};

/** The kind of the user's login shell. A shell that is not known counts as a POSIX shell. */
export function loginShellKind(
  environment: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): ShellKind {
  const fallback = platform === "win32" ? "powershell" : "sh";
  return SHELL_KINDS[basename(environment["SHELL"] ?? "")] ?? fallback;
}

/** The line that sets a variable and passes it to programs. The shell reads the value exactly as it is. */
export function setVariable(kind: ShellKind, name: string, value: string): string {
  switch (kind) {
    case "fish":
      return `set -gx ${name} '${value.replaceAll(/[\\']/g, String.raw`\$&`)}';`;
    case "csh":
      // The shell's history would take an exclamation mark even there.
      return `setenv ${name} '${value.replaceAll("'", String.raw`'\''`).replaceAll("!", String.raw`\!`)}';`;
    case "powershell":
      return `$env:${name} = '${value.replaceAll("'", "''")}'`;
    default:
      return `${name}='${value.replaceAll("'", String.raw`'\''`)}'; export ${name};`;
  }
}
