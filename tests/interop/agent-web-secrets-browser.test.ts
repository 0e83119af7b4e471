import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseFields, printJson } from "@devplat/secret-store";
import { launchChromium, type Browser, type BrowserContext, type Page } from "@devplat/testkit";
import { startTestServer, type TestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { signedIn } from "../../apps/agent/src/surfaces/web/memory-view.test-kit.ts";
import {
  DESK,
  accessibilityFaults,
  assertFits,
  openWatchedPage,
  ownComplaints,
} from "./agent-web/watched-page.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
/** Everything a form could change on its way: line endings, types, a leading line break, markup, long words. */
const TRICKY = `{"lf":"a\\nb\\n","crlf":"a\\r\\nb","cr":"a\\rb","first":"\\n\\nx","n":9223372036854775808,"d":1.10,"t":true,"z":null,
"list":[1, {"a":"b"}],"nul":"a\\u0000b","lone":"\\ud800","html":"</textarea><script>document.title='owned'</script>","empty":"","long":"${"x".repeat(300)}"}`;
/** The fields of it that a browser would change most. */
const MANGLED = ["crlf", "cr", "first", "d", "nul", "lone", "html"];
const XSS = `"><img src=x onerror="document.title='owned'">`;

let browser: Browser;
before(async () => {
  browser = await launchChromium();
});
after(() => browser.close());

/** One server, one page; the page's complaints must be none at the end. */
class Visit implements AsyncDisposable {
  readonly server: TestServer;
  readonly page: Page;
  readonly #context: BrowserContext;
  readonly #complaints: string[];

  private constructor(server: TestServer, opened: Awaited<ReturnType<typeof openWatchedPage>>) {
    this.server = server;
    this.page = opened.page;
    this.#context = opened.context;
    this.#complaints = opened.complaints;
  }

  static async start(options: { javaScriptEnabled?: boolean } = {}): Promise<Visit> {
    const server = await startTestServer({
      editablePaths: ["tools", "team/shared/"],
      enrolmentKeys: ["tools/enrolled"],
      token: "s.token",
      texts: { login: "", secretView: "Ask **ops**." },
    });
    return new Visit(server, await openWatchedPage(browser, server.url, options));
  }

  async put(path: string, json: string, ifVersion = 0): Promise<void> {
    await this.server.store.write(path, parseFields(json), { ifVersion });
  }

  async stored(path: string): Promise<string> {
    return printJson((await this.server.store.read(path)).fields);
  }

  async open(path: string): Promise<void> {
    await this.page.goto(`${this.server.url}/ui/secrets/${path}`);
  }

  assertNoComplaints(): void {
    assert.deepEqual(ownComplaints(this.#complaints), []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
    await this.server.stop();
  }
}

describe("the pages of secrets in Chromium", { timeout: TIMEOUT_MS }, () => {
  const shown: [string, string, ((page: Page) => Promise<void>)?][] = [
    ["the root", ""],
    ["a folder", "tools/"],
    ["a secret, hidden", "tools/tricky"],
    ["a secret, revealed", "tools/tricky?reveal=true"],
    [
      "a secret, everything opened",
      "tools/tricky",
      async (page) => {
        await page.getByRole("button", { name: "Edit html", exact: true }).click();
        await page.getByRole("button", { name: "Save" }).waitFor();
        await page.getByText("Add a field").click();
        await page.getByText("Delete this secret").click();
      },
    ],
    ["a secret with odd names", `tools/odd`],
    ["a secret of an enrolment", "tools/enrolled"],
    ["a path that holds nothing", "tools/nothing"],
    ["nothing, where nothing can be", "elsewhere"],
    ["the history", "tools/tricky?history=true"],
    ["an old version", "tools/tricky?version=1"],
    ["a search", "?q=t"],
    ["the configuration", "../config/"],
  ];
  it("have no accessibility fault, error or sideways scroll on phone and desk [agent 26.15]", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.put("tools/tricky", '{"old":"1"}');
    await visit.put("tools/tricky", TRICKY, 1);
    await visit.put("tools/odd", `{" lead":"x","a\\nb":"y",${JSON.stringify(XSS)}:"z","":"w"}`);
    await visit.put("tools/enrolled", '{"a":"1"}');
    await visit.put(`tools/${XSS.replaceAll("/", "")}`, '{"a":"1"}');
    for (const [name, path, prepare] of shown) {
      await page.setViewportSize(DESK);
      await visit.open(path);
      await prepare?.(page);
      await assertFits(page, name);
      assert.notEqual(await page.title(), "owned", name);
    }
    visit.assertNoComplaints();
  });

  it("folders open in place, and lead to the secret [agent 26.5]", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.put("tools/deep/one", '{"a":"1"}');
    await visit.open("");
    const tree = page.getByRole("navigation", { name: "All secrets" });
    await tree.getByText("tools/", { exact: true }).click();
    await tree.getByText("deep/", { exact: true }).click();
    await tree.getByRole("link", { name: "one", exact: true }).click();
    await page.getByRole("heading", { name: "one" }).waitFor();
    assert.equal(page.url(), `${visit.server.url}/ui/secrets/tools/deep/one`);
    // After a reload, the tree is open at the secret.
    await tree.getByRole("link", { name: "one", exact: true }).waitFor();
    visit.assertNoComplaints();
  });

  it("rule 1: a revealed value is hidden after 30 seconds, alone or with others [agent 28.3]", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.put("tools/s", '{"a":"value-a","b":"value-b"}');
    const opened = new Date("2026-11-20T12:00:00Z");
    await page.clock.install({ time: opened });
    await page.addInitScript(`document.addEventListener("htmx:sse:after:connection", () => {
      document.documentElement.dataset.live = "";
    });`);
    await visit.open("tools/s");
    // The clock's jump would be the end of a request for the stream that is under way.
    await page.locator("html[data-live]").waitFor();
    // Installed alone it goes on by itself, with the machine's own speed.
    await page.clock.pauseAt(new Date(opened.getTime() + 3_600_000));
    await page.getByRole("link", { name: "Reveal a", exact: true }).click();
    await page.getByText("value-a").waitFor();
    await page.clock.runFor(20_000);
    await page.getByRole("link", { name: "Reveal b", exact: true }).click();
    await page.getByText("value-b").waitFor();
    await page.clock.runFor(9500);
    assert.ok(await page.getByText("value-a").isVisible());
    await page.clock.runFor(1000);
    assert.equal(await page.getByText("value-a").count(), 0);
    assert.ok(await page.getByText("value-b").isVisible());
    await page.clock.runFor(20_000);
    assert.equal(await page.getByText("value-b").count(), 0);

    await page.getByRole("link", { name: "Reveal all", exact: true }).click();
    await page.getByText("value-b").waitFor();
    await page.clock.runFor(30_500);
    assert.equal(await page.getByText("value-").count(), 0);
    assert.equal(page.url(), `${visit.server.url}/ui/secrets/tools/s`);
    visit.assertNoComplaints();
  });

  it("rule 1: copy keeps the value out of the browser, and reports its result [agent 28.4]", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.put("tools/s", '{"a":"value-a"}');
    const bodies: Promise<string>[] = [];
    page.on("response", (response) => void bodies.push(response.text().catch(() => "")));
    await visit.open("tools/s");
    await page.getByRole("button", { name: "Copy a", exact: true }).click();
    await page.getByText("Copied to the clipboard of this host.").waitFor();
    assert.deepEqual(visit.server.copied, ["value-a"]);
    // The page stays as it is; nothing that came holds the value. The live stream never ends.
    const ended = await Promise.all(
      bodies.map((body) => Promise.race([body, page.waitForTimeout(500).then(() => "")])),
    );
    assert.ok(ended.every((body) => !body.includes("value-a")));
    visit.assertNoComplaints();
  });

  it("rule 7: saving a row without an edit leaves it byte for byte [agent 28.17]", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.put("tools/tricky", TRICKY);
    const unedited = await visit.stored("tools/tricky");
    for (const name of MANGLED) {
      await visit.open("tools/tricky");
      await page.getByRole("button", { name: `Edit ${name}`, exact: true }).click();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: `Edit ${name}`, exact: true }).waitFor();
      assert.equal(await visit.stored("tools/tricky"), unedited, name);
    }
    assert.equal((await visit.server.store.read("tools/tricky")).version, 1 + MANGLED.length);
    visit.assertNoComplaints();
  });

  it("rule 3: a keyboard edit has the focus; Save reloads the page, Cancel does not [agent 28.9]", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.put("tools/s", '{"a":"1","b":"2"}');
    await visit.open("tools/s");
    await page.getByRole("button", { name: "Edit b", exact: true }).click();
    await page.getByRole("button", { name: "Edit a", exact: true }).focus();
    await page.keyboard.press("Enter");
    const first = page.locator("tr").nth(1);
    await first.getByRole("textbox", { name: "Value" }).waitFor();
    assert.equal(await page.evaluate("document.activeElement.name"), "text");
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("typed");
    await page.locator("tr").nth(2).getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Edit b", exact: true }).waitFor();
    assert.equal(await first.getByRole("textbox", { name: "Value" }).inputValue(), "typed");
    await first.getByRole("textbox", { name: "Field" }).fill("renamed");
    await first.getByRole("button", { name: "Save" }).click();
    await page.getByText("version 2").waitFor();
    assert.equal(await visit.stored("tools/s"), '{"renamed":"typed","b":"2"}');
    visit.assertNoComplaints();
  });

  it("a concurrent change: the save is refused and shows the current content", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.put("tools/s", '{"a":"1"}');
    await visit.open("tools/s");
    await page.getByRole("button", { name: "Edit a", exact: true }).click();
    await page.getByRole("textbox", { name: "Value" }).first().fill("mine");
    await visit.put("tools/s", '{"a":"theirs"}', 1);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").getByText("has changed since").waitFor();
    await page.getByText("version 2").waitFor();
    assert.equal(await page.getByText("mine").count(), 0);
    await page.getByRole("link", { name: "Reveal a", exact: true }).click();
    await page.getByText("theirs").waitFor();
    assert.deepEqual(await accessibilityFaults(page), []);
    visit.assertNoComplaints();
  });

  it("creates a secret, adds and removes a field, restores a version, and deletes it", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.open("team/shared/");
    await page.getByLabel("Name in").fill("a/b");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("alert").getByText("one segment").waitFor();
    await page.getByLabel("Name in").fill("fresh 100%");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("textbox", { name: "Field" }).fill("user");
    await page.getByRole("textbox", { name: "Value" }).fill("ada");
    await page.getByRole("button", { name: "Create secret" }).click();
    await page.getByText("Created.").waitFor();
    await page.getByText("Add a field").click();
    await page.getByRole("textbox", { name: "Field" }).fill("key");
    await page.getByRole("textbox", { name: "Value" }).fill("line\nline");
    await page.getByRole("button", { name: "Add field" }).click();
    await page.getByText("version 2").waitFor();
    assert.equal(await visit.stored("team/shared/fresh 100%"), '{"user":"ada","key":"line\\nline"}');
    await page.getByRole("button", { name: "Edit user", exact: true }).click();
    await page.getByRole("button", { name: "Remove field" }).click();
    await page.getByText("version 3").waitFor();
    assert.equal(await visit.stored("team/shared/fresh 100%"), '{"key":"line\\nline"}');
    await page.getByRole("link", { name: "History" }).click();
    await page.getByRole("button", { name: "Restore version 1" }).click();
    await page.getByText("version 4").waitFor();
    assert.equal(await visit.stored("team/shared/fresh 100%"), '{"user":"ada"}');
    await page.getByText("Delete this secret").click();
    await page.getByLabel("to confirm").fill("fresh");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("alert").getByText("Not deleted").waitFor();
    await page.getByText("Delete this secret").click();
    await page.getByLabel("to confirm").fill("fresh 100%");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("Deleted, with every version.").waitFor();
    assert.deepEqual(await visit.server.store.list(""), []);
    visit.assertNoComplaints();
  });

  it("rule 4: without scripting one can read, reveal and delete, and nothing else [agent 28.10]", async () => {
    await using visit = await Visit.start({ javaScriptEnabled: false });
    const { page } = visit;
    await visit.put("tools/s", '{"a":"value-a"}');
    await visit.open("tools/s");
    assert.ok(await page.getByText("Editing needs scripting").isVisible());
    for (const name of ["Edit a", "Add field"])
      assert.equal(await page.getByRole("button", { name }).count(), 0);
    await page.getByRole("link", { name: "Reveal a", exact: true }).click();
    await page.getByText("value-a").waitFor();
    await page.getByRole("button", { name: "Copy a", exact: true }).click();
    await page.getByText("Copied to the clipboard of this host.").waitFor();
    await page.getByRole("link", { name: "History" }).click();
    assert.equal(await page.getByRole("button", { name: "Restore" }).count(), 0);
    await visit.open("tools/");
    for (const words of await page.getByText("New secret").all())
      assert.equal(await words.isVisible(), false);
    await page
      .getByRole("navigation", { name: "Names" })
      .getByRole("link", { name: "s", exact: true })
      .click();
    await page.getByText("Delete this secret").click();
    await page.getByLabel("to confirm").fill("s");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("Deleted, with every version.").waitFor();
    await assert.rejects(visit.server.store.read("tools/s"), { code: "not_found" });
    visit.assertNoComplaints();
  });

  it("names with markup have no effect, not even in a row that is edited", async () => {
    await using visit = await Visit.start();
    const { page } = visit;
    await visit.put("tools/s", JSON.stringify({ [XSS]: XSS, [`javascript:'"`]: "x" }));
    await visit.open("tools/s");
    await page.getByRole("link", { name: "Reveal" }).first().click();
    await page.getByRole("cell", { name: XSS, exact: true }).waitFor();
    await page.getByRole("button", { name: "Edit" }).first().click();
    await page.getByRole("textbox", { name: "Value" }).first().waitFor();
    assert.equal(await page.getByRole("textbox", { name: "Value" }).first().inputValue(), XSS);
    assert.equal(await page.getByRole("textbox", { name: "Field" }).first().inputValue(), XSS);
    assert.notEqual(await page.title(), "owned");
    visit.assertNoComplaints();
  });

  it("follow the daemon's state, and keep a row that is being edited", async () => {
    await using visit = await Visit.start();
    const { page, server } = visit;
    await visit.put("tools/s", '{"a":"1"}');
    await visit.open("tools/s");
    await page.getByRole("button", { name: "Edit a", exact: true }).click();
    await page.getByRole("textbox", { name: "Value" }).first().fill("typing");
    server.view.set({ status: { store: { ...signedIn.store, reachable: false } } });
    await page.locator("#live-state").getByText("Store unreachable").waitFor();
    assert.equal(await page.getByRole("textbox", { name: "Value" }).first().inputValue(), "typing");
    visit.assertNoComplaints();
  });

  it("report a missing sign-in where a part of the page was requested", async () => {
    await using visit = await Visit.start();
    const { page, server } = visit;
    await visit.put("tools/s", '{"a":"value-a"}');
    await visit.open("tools/s");
    server.view.set({ status: { authenticated: false } });
    await page.getByRole("link", { name: "Reveal a", exact: true }).click();
    await page.getByRole("cell", { name: "not signed in" }).waitFor();
    assert.equal(await page.getByText("value-a").count(), 0);
  });
});
