import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";
import type { RunCommand } from "./common/command.ts";

// In each, OPTIONS is replaced by the options of `login-check`.

/** For zsh: by its own modules, without another process. */
const ZSH = `__agent_login_check() {
  emulate -L zsh
  local marker=\${AGENT_SUPPRESS_MARKER:-\${\${(M)XDG_STATE_HOME:#/*}:-$HOME/.local/state}/daemon/login-check-suppress}
  local hours=\${AGENT_SUPPRESS_HOURS:-6}
  local -A found
  if [[ $hours == <1-999999> ]] && zmodload -F zsh/stat b:zstat 2>/dev/null && zmodload zsh/datetime 2>/dev/null &&
    zstat -H found -- $marker 2>/dev/null &&
    (( found[mtime] <= EPOCHSECONDS && EPOCHSECONDS - found[mtime] < hours * 3600 )); then
    return 0
  fi
  command agent login-check OPTIONS
}
__agent_login_check
`;

/** For fish 3.6 and later: by its own \`path\`, without another process. */
const FISH = `function __agent_login_check
  set -l state $HOME/.local/state
  string match --quiet -- '/*' "$XDG_STATE_HOME"; and set state $XDG_STATE_HOME
  set -l marker $state/daemon/login-check-suppress
  test -n "$AGENT_SUPPRESS_MARKER"; and set marker $AGENT_SUPPRESS_MARKER
  set -l hours 6
  test -n "$AGENT_SUPPRESS_HOURS"; and set hours $AGENT_SUPPRESS_HOURS
  if string match --quiet --regex '^0*[1-9][0-9]{0,5}$' -- $hours
    set -l age (path mtime --relative -- $marker 2>/dev/null)
    if test -n "$age"; and test "$age" -ge 0; and test "$age" -lt (math "$hours * 3600")
      return 0
    end
  end
  command agent login-check OPTIONS
end
__agent_login_check
`;

/** For bash and sh: one find; where it lacks \`-newermt\`, the command itself is run. */
const POSIX = `__agent_login_check() {
  case "\${XDG_STATE_HOME:-}" in /*) __agent_marker=$XDG_STATE_HOME ;; *) __agent_marker=$HOME/.local/state ;; esac
  __agent_marker=\${AGENT_SUPPRESS_MARKER:-$__agent_marker/daemon/login-check-suppress}
  __agent_hours=\${AGENT_SUPPRESS_HOURS:-6}
  case "$__agent_hours" in
    *[!0-9]* | 0* | ???????*) ;;
    *)
      if [ -n "$(find "$__agent_marker" -prune -mmin "-$((__agent_hours * 60))" ! -newermt now 2>/dev/null)" ]; then
        unset __agent_marker __agent_hours
        return 0
      fi
      ;;
  esac
  unset __agent_marker __agent_hours
  command agent login-check OPTIONS
}
__agent_login_check
`;

const HOOKS: Readonly<Record<string, string>> = { zsh: ZSH, fish: FISH, bash: POSIX, sh: POSIX };

/** Prints a function for a shell's start-up file that looks at the marker itself, and runs `login-check` if it is stale. */
export const run: RunCommand = async ({ positionals, options }) => {
  const hook = HOOKS[positionals[0] ?? ""];
  if (hook === undefined) {
    throw new AgentError("usage", `'${BRAND.command} shell-hook' knows ${Object.keys(HOOKS).join(", ")}`);
  }
  const chosen = ["no-passwd", "quiet"].filter((name) => options[name] === true).map((name) => ` --${name}`);
  process.stdout.write(hook.replace(" OPTIONS", chosen.join("")));
  return 0;
};
