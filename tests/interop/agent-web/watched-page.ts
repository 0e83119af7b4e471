import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "@devplat/testkit";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1280, height: 800 };

/** Chromium has no limit of its own for these: longer than this, and it hangs. */
const TAKEN_LIMIT_MS = 60_000;

/** A page that fails the test on anything in its console (a violation of the policy too) and on outside requests. */
export async function openWatchedPage(
  browser: Browser,
  url: string,
  options: { javaScriptEnabled?: boolean } = {},
): Promise<{ page: Page; context: BrowserContext; complaints: string[] }> {
  const context = await inTime("newContext", browser.newContext(options));
  const page = await inTime("newPage", context.newPage());
  nameHangs(page.keyboard, ["press", "type"]);
  nameHangs(page, ["evaluate", "content"]);
  const close = context.close.bind(context);
  // Chromium sometimes never ends a context. The test has its results already, and the browser ends with the file.
  context.close = (...args) => inTime("close", close(...args)).catch(() => undefined);
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${url}/`)) complaints.push(`outside request: ${request.url()}`);
  });
  return { page, context, complaints };
}

/** Makes the methods reject with their name and arguments where they would never end. */
function nameHangs<K extends string>(
  target: Record<K, (...args: never[]) => Promise<unknown>>,
  methods: readonly K[],
): void {
  for (const name of methods) {
    const method = target[name].bind(target) as (...args: unknown[]) => Promise<unknown>;
    const limited = (...args: unknown[]): Promise<unknown> =>
      inTime(`${name}(${JSON.stringify(args).slice(0, 80)})`, method(...args));
    Object.assign(target, { [name]: limited });
  }
}

/** Result of the promise. If it takes too long, the error names the awaited event. */
async function inTime<T>(what: string, promise: Promise<T>): Promise<T> {
  const done = new AbortController();
  const limit = sleep(TAKEN_LIMIT_MS, undefined, { signal: done.signal }).then(() => {
    throw new Error(`${what} is not taken by Chromium`);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    limit.catch(() => undefined);
    done.abort();
  }
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** Findings of axe, as `rule: element`. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const violations: Violation[] = await page.evaluate("axe.run().then((result) => result.violations)");
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

/** Complaints of the page's own. Chromium itself writes a line for an answer with an error status; a refusal is one. */
export function ownComplaints(complaints: readonly string[]): string[] {
  return complaints.filter((text) => !text.startsWith("error: Failed to load resource"));
}

/**
 * Asserts that a page has no accessibility fault and does not scroll sideways, on phone and desk, light and dark.
 * `PICTURES` (environment) is a folder for pictures of what was looked at.
 */
export async function assertFits(page: Page, name = page.url()): Promise<void> {
  const { PICTURES: pictures } = process.env;
  // Contrast depends on the scheme, layout on the width: two of the four cover both.
  for (const [viewport, colorScheme] of [
    [PHONE, "dark"],
    [DESK, "light"],
  ] as const) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    const where = `${name} ${viewport.width} ${colorScheme}`;
    if (pictures !== undefined) {
      await page.screenshot({ path: join(pictures, `${where.replaceAll("/", "_")}.png`), fullPage: true });
    }
    assert.deepEqual(await accessibilityFaults(page), [], where);
    const wider = await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    assert.equal(wider, 0, where);
  }
}
