import type { DesktopOutcome } from "../../desktop/program.ts";
import type { ActionKind } from "../../config/sections/action-kinds.ts";

const FAILURES: Readonly<Record<ActionKind, Readonly<Record<Exclude<DesktopOutcome, "done">, Failure>>>> = {
  browse: {
    no_program: {
      message: "no program of this host opens web addresses",
      hint: "Install xdg-utils, or forward the peer socket of a workstation to this host.",
    },
    failed: {
      message: "the browser could not be opened",
      hint: "Is there a browser, and does this run inside of a desktop session?",
    },
  },
  notify: {
    no_program: {
      message: "no program of this host raises notifications",
      hint: "Install notify-send (libnotify), or forward the peer socket of a workstation to this host.",
    },
    failed: {
      message: "the notification could not be raised",
      hint: "Does a notification service run in this session (DBUS_SESSION_BUS_ADDRESS)?",
    },
  },
  clipboard: {
    no_program: {
      message: "nothing on this host can set a clipboard",
      hint: "Inside of a desktop session (DISPLAY or WAYLAND_DISPLAY), install wl-clipboard, xclip or xsel; elsewhere, forward the peer socket of a workstation to this host.",
    },
    failed: {
      message: "the clipboard did not take the text",
      hint: "Is the desktop session that DISPLAY or WAYLAND_DISPLAY names still there?",
    },
  },
};

interface Failure {
  readonly message: string;
  readonly hint: string;
}

/** Message for an action that this host's desktop has not done. */
export function failureOf(kind: ActionKind, outcome: Exclude<DesktopOutcome, "done">): Failure {
  return FAILURES[kind][outcome];
}
