import { firstThatWorks, type Command, type DesktopOutcome } from "./program.ts";

/**
 * Openers end immediately when they pass the address to a running browser. Without one they become the browser. One
 * that still runs after this time, in milliseconds, has become it.
 */
const SETTLED_AFTER_MS = 2000;

/** The default browser of this host's desktop. */
export class DesktopBrowser {
  readonly #environment: NodeJS.ProcessEnv;
  readonly #platform: NodeJS.Platform;

  constructor(environment: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform) {
    this.#environment = environment;
    this.#platform = platform;
  }

  /** @param url a web address that `parseWebUrl` has taken: it is handed to the system */
  open(url: string): Promise<DesktopOutcome> {
    const commands = openers(this.#platform).map((opener): Command => [...opener, url]);
    const options = { environment: this.#environment, settledAfterMs: SETTLED_AFTER_MS };
    return firstThatWorks(commands, options);
  }
}

/** The programs that open an address with the user's own choice of browser, best first. */
function openers(platform: NodeJS.Platform): readonly Command[] {
  if (platform === "darwin") return [["open"]];
  if (platform === "win32") return [["rundll32", "url.dll,FileProtocolHandler"]];
  return [["xdg-open"], ["gio", "open"]];
}
