import { chromium, type Browser } from "playwright-core";
import { chromiumProgram } from "./peer-programs.ts";

export type { Browser, BrowserContext, Page } from "playwright-core";

/**
 * Starts the machine's Chromium without a window. Close it with `browser.close()`.
 * @param switches more of its command line, as `--name=value`
 */
export function launchChromium(switches: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumProgram(),
    args: [
      // root has no user namespace to build a sandbox in; the pages are our own.
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-dev-shm-usage",
      ...switches,
    ],
  });
}
