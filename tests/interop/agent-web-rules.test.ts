import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { launchChromium, until, type Browser } from "@devplat/testkit";
import { ruleView } from "../../apps/agent/src/surfaces/web/memory-view.test-kit.ts";
import {
  startTestServer,
  type Answer,
  type TestServer,
} from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { assertFits, openWatchedPage } from "./agent-web/watched-page.ts";

const DIFF = `--- ~/.npmrc\n+++ ~/.npmrc\n@@ -1,1 +1,1 @@\n-token=••••\n+token=••••<b>\n`;

async function start(): Promise<{
  server: TestServer;
  post: (path: string, action: string) => Promise<Answer>;
}> {
  const server = await startTestServer({
    ruleControl: {
      setPaused: async (name, paused) => {
        if (name === "fixed") return "configured";
        server.view.set({
          rules: [ruleView(name, { state: paused ? "paused" : "pending" }), ruleView("fixed")],
        });
        return "done";
      },
      nextChange: async (name) =>
        name === "fixed" ? { problem: "there is no .tokn" } : { diff: name === "npm" ? DIFF : "" },
    },
  });
  const failed = {
    state: "failed" as const,
    error: "cannot be read",
    consecutive_failures: 2,
    run: {
      at: "2026-11-21T09:00:00.000Z",
      exit_code: 3,
      timed_out: false,
      duration_ms: 12,
      stdout_bytes: 0,
      stderr_bytes: 5,
    },
  };
  server.view.set({ rules: [ruleView("npm", failed), ruleView("fixed", { state: "paused" })] });
  const post = (path: string, action: string): Promise<Answer> =>
    server.send(path, { method: "POST", headers: { Origin: server.url }, body: `action=${action}` });
  return { server, post };
}

describe("the pages of rules", () => {
  it("show a rule's state, last error and command result, with a link to its secret [agent 26.10]", async () => {
    const { server } = await start();
    const { body } = await server.send("/ui/rules/npm/");
    assert.match(body, /cannot be read/);
    assert.match(body, /exit code 3, 12 ms/);
    assert.match(body, /href="\/ui\/secrets\/tools\/npm"/);
    assert.match((await server.send("/ui/rules/")).body, /href="\/ui\/rules\/npm\/"/);
    await server.stop();
  });

  it("say that a file is on the mount only", async () => {
    const { server } = await start();
    const target = { path: "~/.daemon/app/.env", format: "dotenv", mode: "0400", mounted: true };
    server.view.set({ rules: [ruleView("env", { target })] });
    for (const path of ["/ui/rules/", "/ui/rules/env/"])
      assert.match(
        (await server.send(path)).body,
        /~\/\.daemon\/app\/\.env<\/code>[^]*dotenv, on the mount only/,
      );
    await server.stop();
  });

  it("show what the next cycle would change, or why it could not [agent 26.10]", async () => {
    const { server } = await start();
    assert.match(
      (await server.send("/ui/rules/npm/?diff=true")).body,
      /Every value is masked[^]*-token=••••/,
    );
    const { body } = await server.send("/ui/rules/fixed/?diff=true");
    assert.match(body, /it would fail: <span class="error wrap">there is no \.tokn/);
    assert.doesNotMatch(body, /Every value is masked/);
    await server.stop();
  });

  it("a pause and a resume are posted from an agent page, and named in the log", async () => {
    const { server, post } = await start();
    assert.equal((await post("/ui/rules/npm/", "pause")).headers.location, "/ui/rules/npm/?done=paused");
    assert.match((await server.send("/ui/rules/npm/?done=paused")).body, /Resume<\/button>/);
    assert.equal((await post("/ui/rules/npm/", "resume")).headers.location, "/ui/rules/npm/?done=resumed");
    const foreign = await server.send("/ui/rules/npm/", { method: "POST", body: "action=pause" });
    assert.equal(foreign.status, 403);
    assert.match(server.log.join("\n"), /"rule":"npm","by":"page","message":"rule paused"/);
    await server.stop();
  });

  it("Sync this rule starts a cycle that tries it, and leads back to it [agent 26.10]", async () => {
    const { server, post } = await start();
    const { status, headers } = await post("/ui/rules/npm/", "sync");
    assert.deepEqual([status, headers.location], [303, "/ui/rules/npm/?done=synced"]);
    assert.deepEqual(server.view.asked, ["npm"]);
    assert.match((await server.send(headers.location ?? "")).body, /The cycle is done/);
    await server.stop();
  });

  it("a rule that the configuration pauses is not resumed, with the reason", async () => {
    const { server, post } = await start();
    const refused = await post("/ui/rules/fixed/", "resume");
    assert.equal(refused.status, 409);
    assert.match(refused.body, /the configuration pauses this rule/);
    await server.stop();
  });

  it("no rule of the name, or no such action, is 404", async () => {
    const { server, post } = await start();
    assert.equal((await server.send("/ui/rules/other/")).status, 404);
    assert.equal((await post("/ui/rules/other/", "pause")).status, 404);
    assert.equal((await post("/ui/rules/npm/", "explode")).status, 404);
    await server.stop();
  });
});

describe("the pages of rules in Chromium", { timeout: 480_000 }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchChromium();
  });
  after(() => browser.close());

  it("follow the rule live, and keep the focus", async () => {
    await using server = (await start()).server;
    const { page, context, complaints } = await openWatchedPage(browser, server.url);
    await page.goto(`${server.url}/ui/rules/npm/`);
    await page.getByRole("button", { name: "Sync this rule" }).focus();
    await until(async () => /^agent_event_streams 1$/m.test((await server.send("/metrics")).body));
    server.view.set({ rules: [ruleView("npm", { state: "failed", error: "a new reason" })] });
    await page.getByText("a new reason").waitFor();
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Sync this rule");
    await page.goto(`${server.url}/ui/rules/`);
    await page.getByText("a new reason").waitFor();
    server.view.set({ rules: [ruleView("npm", { state: "ok" })] });
    await page.getByText("Up to date", { exact: true }).waitFor();
    assert.deepEqual(complaints, []);
    await context.close();
  });

  it("without scripting: the next change, pause and resume; no fault of accessibility", async () => {
    const { server } = await start();
    const { page, context, complaints } = await openWatchedPage(browser, server.url, {
      javaScriptEnabled: false,
    });
    await page.goto(`${server.url}/ui/rules/`);
    await page.getByRole("link", { name: "npm", exact: true }).click();
    await page.getByRole("link", { name: "Show next change" }).click();
    await page.getByText("+token=••••<b>").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Paused: the next cycle").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("Resumed: the next cycle").waitFor();
    await context.close();

    const scripted = await openWatchedPage(browser, server.url);
    for (const path of ["", "npm/?diff=true"]) {
      await scripted.page.goto(`${server.url}/ui/rules/${path}`);
      await assertFits(scripted.page);
    }
    assert.deepEqual([...complaints, ...scripted.complaints], []);
    await scripted.context.close();
    await server.stop();
  });
});
