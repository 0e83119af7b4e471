import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContext, Page } from "@devplat/testkit";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1280, height: 800 };

/** A page that fails the test on anything in its console (a violation of the policy too) and on outside requests. */
export async function openWatchedPage(
  browser: Browser,
  url: string,
  options: { javaScriptEnabled?: boolean } = {},
): Promise<{ page: Page; context: BrowserContext; complaints: string[] }> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${url}/`)) complaints.push(`outside request: ${request.url()}`);
  });
  return { page, context, complaints };
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** What axe finds, as `rule: element`. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const violations: Violation[] = await page.evaluate("axe.run().then((result) => result.violations)");
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}
