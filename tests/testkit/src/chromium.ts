import { chromium, type Browser, type BrowserContext, type LaunchOptions } from "playwright-core";
import { chromiumProgram, headlessChromiumProgram } from "./peer-programs.ts";

/** A start on a loaded machine. */
const START_LIMIT_MS = 90_000;
/** Time limit for a page to show what a test waits for. */
const ACTION_LIMIT_MS = 60_000;

export type { Browser, BrowserContext, Page } from "playwright-core";

/**
 * Starts the machine's Chromium, the headless shell. Close it with `browser.close()`.
 * @param switches more of its command line, as `--name=value`
 */
export async function launchChromium(switches: readonly string[] = []): Promise<Browser> {
  const browser = await chromium.launch(launchOptions(headlessChromiumProgram(), switches));
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(ACTION_LIMIT_MS);
    return context;
  };
  return browser;
}

/** The whole Chromium with a profile that stays in a folder, as a user's browser keeps one. Close it with `context.close()`. */
export async function launchChromiumProfile(folder: string): Promise<BrowserContext> {
  const context = await chromium.launchPersistentContext(folder, launchOptions(chromiumProgram(), []));
  context.setDefaultTimeout(ACTION_LIMIT_MS);
  return context;
}

function launchOptions(program: string, switches: readonly string[]): LaunchOptions {
  return {
    executablePath: program,
    timeout: START_LIMIT_MS,
    args: [
      // root has no user namespace to build a sandbox in; the pages are our own.
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-dev-shm-usage",
      ...switches,
    ],
  };
}
