import type { Secret } from "@devplat/base";
import { DesktopBrowser } from "./browser.ts";
import { DesktopClipboard, type CopyOutcome } from "./clipboard.ts";
import type { Notification } from "./notification.ts";
import { DesktopNotifier } from "./notifier.ts";
import type { DesktopOutcome } from "./program.ts";

/** Actions on the desktop of this host. */
export interface Desktop {
  open(url: string): Promise<DesktopOutcome>;
  raise(notification: Notification): Promise<DesktopOutcome>;
  copy(text: Secret): Promise<CopyOutcome>;
}

/** The desktop by the programs that the platform has for it. */
export function systemDesktop(environment: NodeJS.ProcessEnv): Desktop {
  const browser = new DesktopBrowser(environment);
  const notifier = new DesktopNotifier(environment);
  const clipboard = new DesktopClipboard(environment);
  return {
    open: (url) => browser.open(url),
    raise: (notification) => notifier.raise(notification),
    copy: (text) => clipboard.copy(text),
  };
}
