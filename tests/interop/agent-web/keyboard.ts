import assert from "node:assert/strict";
import type { Page } from "@devplat/testkit";

/** More than any page of the tests has to walk through. */
const MOST_STEPS = 80;
const NAME = `(document.activeElement.getAttribute("aria-label") ?? document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent).trim().replaceAll(/\\s+/g, " ")`;

/** Presses Tab until the element with this name has the focus, as somebody without a mouse does; says in how many steps. */
export async function tabTo(page: Page, name: string): Promise<number> {
  for (let count = 0; count < MOST_STEPS; count++) {
    if ((await page.evaluate(NAME)) === name) return count;
    await page.keyboard.press("Tab");
  }
  return assert.fail(`${name} is not reached by keyboard`);
}
