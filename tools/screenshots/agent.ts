/**
 * `npm run screenshots`: takes the pictures of the daemon's pages in docs/, from a real daemon that goes through
 * the first run as in the guide.
 */
import { join, resolve } from "node:path";
import { launchChromium, type Page } from "@devplat/testkit";
import { ruleView } from "../../apps/agent/src/surfaces/web/memory-view.test-kit.ts";
import { startTestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import {
  openDesk,
  signInAndEnrol,
  startFirstRun,
  storeSecret,
} from "../../tests/interop/agent-web/first-run.ts";
import { takeSshPictures } from "./ssh-pages.ts";

const IMAGES = resolve(import.meta.dirname, "../../docs/images");
/** Wide enough for the tables, and small enough to be read next to text, in CSS pixels. */
const VIEWPORT = { width: 960, height: 600 };

const WANTED: Readonly<Record<string, string>> = {
  "sign-in": "first-sign-in.png",
  setup: "first-setup.png",
  "setup-done": "first-key.png",
  secret: "first-secret.png",
  overview: "first-overview.png",
};

async function look(page: Page, name: string): Promise<void> {
  const file = WANTED[name];
  if (file === undefined) return;
  await page.setViewportSize(VIEWPORT);
  if (name !== "sign-in") await page.getByText("Connected").waitFor();
  await page.screenshot({ path: join(IMAGES, file) });
  process.stdout.write(`${file}\n`);
}

const browser = await launchChromium();

try {
  await using run = await startFirstRun();
  const { page } = await openDesk(browser, run, true);
  await signInAndEnrol(page, run, look);
  await storeSecret(page, run, look);

  await using server = await startTestServer();
  server.view.set({
    rules: [
      ruleView("github-cli", { description: "Token of the gh command line", version: 12 }),
      ruleView("npm", {
        key: "tools/npm",
        target: { path: "~/.npmrc", format: "ini", mode: "0600", mounted: false },
      }),
      ruleView("kube", {
        state: "failed",
        error: "~/.kube/config:14:3: cannot be read as YAML",
        consecutive_failures: 3,
        target: { path: "~/.kube/config", format: "yaml", mode: "0600", mounted: false },
      }),
      ruleView("pypi", { state: "missing", last_synced: null, version: null }),
    ],
  });
  const overview = await browser.newPage({ viewport: { width: 1160, height: 640 } });
  await overview.goto(`${server.url}/ui/`);
  await overview.screenshot({ path: join(IMAGES, "agent-overview.png") });
  process.stdout.write("agent-overview.png\n");
  await takeSshPictures(browser, IMAGES);
} finally {
  await browser.close();
}
