import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { launchChromium, until, type Browser, type BrowserContext, type Page } from "@devplat/testkit";
import {
  fingerprintOf,
  MemoryRemotes,
  remoteView,
} from "../../apps/agent/src/surfaces/forwards/memory-remotes.test-kit.ts";
import type { OfferedKey } from "../../apps/agent/src/surfaces/forwards/host-keys.ts";
import {
  identityView,
  MemorySshAgent,
  PASSPHRASE,
  sshAgentStatus,
} from "../../apps/agent/src/surfaces/ssh-agent/memory-ssh-agent.test-kit.ts";
import { startTestServer, type TestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { tabTo } from "./agent-web/keyboard.ts";
import { assertFits, openWatchedPage, ownComplaints } from "./agent-web/watched-page.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
const EVIL = `"><img src=x onerror=document.title='owned'><script>document.title="owned"</script>`;
const LONG = "x".repeat(200);

type Question = ReturnType<MemorySshAgent["status"]>["questions"][number];

let browser: Browser;
before(async () => {
  browser = await launchChromium();
});
after(() => browser.close());

function offered(host: string, letter: string, pinned?: string): OfferedKey {
  const key = `ssh-ed25519 ${letter.repeat(68)}`;
  return { host, type: "ssh-ed25519", fingerprint: fingerprintOf(letter), key, known: false, pinned };
}

const question = (id: string, change: Partial<Question> = {}): Question => ({
  id,
  kind: "confirm",
  identity: `ssh/${id}`,
  fingerprint: fingerprintOf("Q"),
  facts: [
    { text: "to github.com", verified: true },
    { text: `asked by ${EVIL}`, verified: false },
  ],
  asked_at: "2026-11-21T09:04:40.000Z",
  expires_at: "2026-11-21T09:05:10.000Z",
  ...change,
});

/** Remotes in every state, with long texts and texts that would be markup. */
function everyRemote(): MemoryRemotes {
  const time = "2026-11-21T08:50:00.000Z";
  const lent = { created_at: time, expires_at: time, last_used_at: null, handouts: 1 };
  const tokens = { lent: [lent, lent], added_policies: [LONG, EVIL], problem: EVIL, asking: true };
  const error = { class: "timeout", message: `${EVIL} ${LONG}`, advice: LONG };
  const remotes = new MemoryRemotes([
    remoteView("build.example.com", { tokens, user: "ada", proxy_jump: `${LONG}.example.com` }),
    remoteView("fe80::1%eth0", { state: "reconnecting", error, next_attempt_at: time }),
    remoteView(LONG, { state: "offline", error }),
    remoteView("none", { state: "host-key-error", host_key: null, trust: "none", error }),
    remoteView("ca", { trust: "ca", host_key: null, proven: false }),
    remoteView("off", { state: "disabled", enabled: false, offers: [] }),
  ]);
  remotes.problem = `/home/ada/.config/daemon/ssh.yaml:3:1: ${EVIL}${LONG}`;
  return remotes;
}

function everyKey(): MemorySshAgent {
  const locked = identityView("ssh/prod", { state: "needs-passphrase", hosts: [LONG, "*.example.com"] });
  const used = identityView(`${EVIL}${LONG}`, {
    state: "unlocked",
    unlocked_until: "2026-11-21T20:00:00.000Z",
    certificate_expires_at: "2026-11-21T20:00:00.000Z",
    last_use: { at: "2026-11-21T09:00:00.000Z", destination: LONG, forwarded: true, program: LONG },
  });
  return new MemorySshAgent(
    sshAgentStatus({
      locked: true,
      withheld: 1,
      sockets: [`/run/${LONG}`],
      sources: [
        { name: "enrolments", source: "enrolments", error: null, identities: [locked, used] },
        {
          name: EVIL,
          source: "ca",
          error: `${EVIL}${LONG}`,
          identities: [identityView("h", { state: "hidden" })],
        },
        { name: "empty", source: "relay", error: null, identities: [] },
      ],
      refusals: [{ at: "2026-11-21T09:00:00.000Z", fingerprint: LONG, reason: EVIL }],
      questions: [question("one"), question("two", { kind: "passphrase", facts: [], identity: LONG })],
    }),
  );
}

interface Site {
  readonly server: TestServer;
  readonly remotes: MemoryRemotes;
  readonly agent: MemorySshAgent;
  readonly page: Page;
  readonly context: BrowserContext;
  readonly complaints: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

async function open(
  parts: { remotes?: MemoryRemotes; agent?: MemorySshAgent; javaScriptEnabled?: boolean } = {},
): Promise<Site> {
  const { remotes = new MemoryRemotes([remoteView("build"), remoteView("gpu")]), javaScriptEnabled = true } =
    parts;
  const agent = parts.agent ?? new MemorySshAgent();
  const server = await startTestServer({ remotes, sshAgent: agent, token: "hvs.held" });
  const watched = await openWatchedPage(browser, server.url, { javaScriptEnabled });
  const close = async (): Promise<void> => {
    await watched.context.close();
    await server.stop();
  };
  return { server, remotes, agent, ...watched, [Symbol.asyncDispose]: close };
}

/** Waits until the page of a site has its live stream. */
async function streamOf({ server }: Site): Promise<void> {
  await until(async () => /^agent_event_streams 1$/m.test((await server.send("/metrics")).body));
}

describe("the pages of remotes and of the SSH agent in Chromium", { timeout: TIMEOUT_MS }, () => {
  const pages: [string, (site: Site) => Promise<unknown>][] = [
    ["all remotes, in every state", ({ page, server }) => page.goto(`${server.url}/ui/remotes/`)],
    [
      "the form of a new remote with a fault in each field",
      async ({ page, server }) => {
        await page.goto(`${server.url}/ui/remotes/`);
        await page.getByText("Add a remote").click();
        await page.getByText("Jump hosts, socket").click();
        await page.getByLabel("Host", { exact: true }).fill(EVIL);
        for (const label of ["Port", "User", "Jump hosts", "Remote socket", "Lifetime"]) {
          await page.getByLabel(label, { exact: true }).fill(EVIL);
        }
        await page.getByRole("button", { name: "Add", exact: true }).click();
        await page.getByText("Expected a port from 1 to 65535.").waitFor();
      },
    ],
    [
      "the step of a host key, with another key pinned",
      async ({ page, server, remotes }) => {
        remotes.offered = [offered(`${LONG}:22`, "B", fingerprintOf("A"))];
        await page.goto(`${server.url}/ui/remotes/ca/`);
        await page.getByRole("button", { name: "Ask the host" }).click();
        await page.getByText("is another key").waitFor();
      },
    ],
    [
      "a remote with everything",
      ({ page, server }) => page.goto(`${server.url}/ui/remotes/build.example.com/`),
    ],
    ["the peer socket, with a question", ({ page, server }) => page.goto(`${server.url}/ui/peer-socket/`)],
    [
      "the overview, with questions of hosts and of the SSH agent",
      async ({ page, server }) => {
        await page.goto(`${server.url}/ui/`);
        await page.getByText("The SSH agent waits for your answer").waitFor();
      },
    ],
    ["a remote without a key", ({ page, server }) => page.goto(`${server.url}/ui/remotes/none/`)],
    ["a remote with a long name", ({ page, server }) => page.goto(`${server.url}/ui/remotes/${LONG}/`)],
    ["the SSH agent, with everything", ({ page, server }) => page.goto(`${server.url}/ui/agent/`)],
    [
      "the form of a passphrase",
      async ({ page, server }) => {
        await page.goto(`${server.url}/ui/agent/`);
        await page.getByRole("link", { name: "Unlock ssh/prod" }).click();
        await page.getByRole("heading", { name: "Unlock ssh/prod" }).waitFor();
      },
    ],
  ];
  for (const [name, show] of pages) {
    it(`${name}: fits, passes the accessibility check, runs no markup [agent 26.15]`, async () => {
      await using site = await open({ remotes: everyRemote(), agent: everyKey() });
      const peers = {
        socket: `/run/${LONG}`,
        offers: ["token"],
        token_handouts: 1,
        last_token_handout_at: null,
        tokens: site.remotes.get("build.example.com").tokens,
      };
      const { server, remotes, agent } = site;
      server.view.set({ status: { peers, remotes: remotes.list(), ssh_agent: agent.status() } });
      await show(site);
      await assertFits(site.page, name);
      assert.notEqual(await site.page.title(), "owned");
      assert.deepEqual(ownComplaints(site.complaints), []);
    });
  }

  it("both are explained while there is nothing in them", async () => {
    await using server = await startTestServer({ remotes: new MemoryRemotes(), token: "hvs.held" });
    const { page, context } = await openWatchedPage(browser, server.url);
    for (const [path, words] of [
      ["/ui/remotes/", "No remotes yet"],
      ["/ui/agent/", "The SSH agent is off"],
    ] as const) {
      await page.goto(server.url + path);
      await page.getByRole("heading", { name: words }).waitFor();
      await assertFits(page);
    }
    await context.close();
  });
});

describe("live changes of the pages", { timeout: TIMEOUT_MS }, () => {
  it("the list follows the remotes, and keeps an open form with its text and focus [agent 26.23]", async () => {
    await using site = await open();
    const { page, remotes, server } = site;
    await page.goto(`${server.url}/ui/remotes/`);
    await streamOf(site);
    await page.getByText("Add a remote").click();
    await page.getByLabel("Host", { exact: true }).fill("typed");
    remotes.change("gpu", { state: "reconnecting" });
    await page.getByRole("row", { name: /gpu/ }).getByText("Reconnecting").waitFor();
    remotes.set([...remotes.list(), remoteView("third")]);
    await page.getByRole("link", { name: "third" }).waitFor();
    remotes.set(remotes.list().filter(({ host }) => host !== "build"));
    await page.getByRole("link", { name: "build" }).waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("Host", { exact: true }).inputValue(), "typed");
    assert.equal(await page.evaluate("document.activeElement.name"), "host");
    assert.deepEqual(ownComplaints(site.complaints), []);
  });

  it("a remote's page keeps typed settings, and says when they were changed elsewhere", async () => {
    await using site = await open();
    const { page, remotes, server } = site;
    await page.goto(`${server.url}/ui/remotes/build/`);
    await streamOf(site);
    await page.getByText("Show the full key").click();
    await page.getByLabel("User").fill("typed");
    remotes.change("build", { state: "offline" });
    await page.locator("main").getByText("Offline").waitFor();
    assert.equal(await page.getByText("changed elsewhere").count(), 0);
    remotes.change("build", { port: 2222 });
    await page.getByText("changed elsewhere").waitFor();
    assert.equal(await page.getByLabel("User").inputValue(), "typed");
    assert.equal(await page.getByLabel("Full key").isVisible(), true);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    assert.deepEqual(remotes.calls.at(-1), ["edit", "build", { user: "typed" }]);
    await streamOf(site);
    remotes.set([]);
    await page.getByText("has been removed").waitFor();
    assert.deepEqual(ownComplaints(site.complaints), []);
  });

  it("a question of the SSH agent appears, and typing survives another question", async () => {
    await using site = await open();
    const { page, agent, server } = site;
    await page.goto(`${server.url}/ui/agent/`);
    await streamOf(site);
    agent.set({ questions: [question("two", { kind: "passphrase" })] });
    await page.getByLabel("Passphrase", { exact: true }).fill(PASSPHRASE.slice(0, 5));
    agent.set({ questions: [question("one"), question("two", { kind: "passphrase" })] });
    await page.getByText("May ssh/one be used?").waitFor();
    agent.set({ questions: [question("two", { kind: "passphrase" })] });
    await page.getByText("May ssh/one be used?").waitFor({ state: "detached" });
    await page.keyboard.type(PASSPHRASE.slice(5));
    await page.keyboard.press("Enter");
    await page.getByText("The answer is given.").waitFor();
    assert.deepEqual(agent.calls, [["answer", "two", PASSPHRASE]]);
    assert.deepEqual(ownComplaints(site.complaints), []);
  });
});

describe("the pages without a mouse, or without scripting", { timeout: TIMEOUT_MS }, () => {
  it("a remote is added, switched off and deleted by keyboard alone [agent 26.20]", async () => {
    await using site = await open({ remotes: new MemoryRemotes() });
    const { page, remotes, server } = site;
    const { keyboard } = page;
    const press = async (name: string, key = "Enter"): Promise<void> => {
      await tabTo(page, name);
      await keyboard.press(key);
    };
    remotes.offered = [offered("new:22", "N")];
    await page.goto(`${server.url}/ui/remotes/`);
    await press("Add a remote");
    await tabTo(page, "Host");
    await keyboard.type("new");
    await keyboard.press("Enter");
    await page.getByRole("heading", { name: "Is this the key" }).waitFor();
    await press("I have compared the fingerprint. It is the key of new:22.", "Space");
    await press("Trust this key");
    await page.getByText("Added.").waitFor();
    await press("Enabled", "Space");
    await page.getByText("Disabled. The connection is closed.").waitFor();
    assert.equal(await page.getByRole("switch").getAttribute("aria-checked"), "false");
    await press("Delete this remote");
    await press("Delete new");
    await page.getByText("The remote is deleted.").waitFor();
    assert.deepEqual(remotes.list(), []);
    assert.deepEqual(ownComplaints(site.complaints), []);
  });

  it("a remote is added, changed, pinned again and deleted without scripting [agent 26.22]", async () => {
    await using site = await open({ remotes: new MemoryRemotes(), javaScriptEnabled: false });
    const { page, remotes, server } = site;
    remotes.offered = [offered("jump:22", "J"), offered("new:22", "N")];
    await page.goto(`${server.url}/ui/remotes/`);
    await page.getByText("Add a remote").click();
    await page.getByLabel("Host", { exact: true }).fill("new");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    for (const host of ["jump", "new"]) {
      await page.getByRole("heading", { name: `Is this the key of ${host}:22?` }).waitFor();
      // Nothing is preselected, and the browser does not send the form without the mark.
      assert.equal(await page.getByRole("checkbox").isChecked(), false);
      await page.getByRole("button", { name: "Trust this key" }).click();
      await page.getByRole("checkbox").check();
      await page.getByRole("button", { name: "Trust this key" }).click();
    }
    await page.getByText("Added.").waitFor();
    await page.getByLabel("Port").fill("2222");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal(remotes.get("new").port, 2222);
    remotes.offered = [offered("new:2222", "B", fingerprintOf("N"))];
    await page.getByRole("button", { name: "Ask the host" }).click();
    await page.getByText("is another key").waitFor();
    await page.getByRole("checkbox").check();
    await page.getByRole("button", { name: "Trust this key" }).click();
    await page.getByText("The host key is pinned.").waitFor();
    await page.getByText("Delete this remote").click();
    await page.getByRole("button", { name: "Delete new" }).click();
    await page.getByText("The remote is deleted.").waitFor();
    assert.deepEqual(remotes.list(), []);
  });

  it("the SSH agent is answered, and a key unlocked, without scripting [agent 26.24]", async () => {
    await using site = await open({ agent: everyKey(), javaScriptEnabled: false });
    const { page, agent, server } = site;
    await page.goto(`${server.url}/ui/agent/`);
    await page.getByRole("button", { name: "Refuse" }).first().click();
    await page.getByText("Refused.").first().waitFor();
    assert.deepEqual(agent.calls, [["answer", "one", false]]);
    await page.getByRole("link", { name: "Unlock ssh/prod" }).click();
    const form = page.getByRole("form", { name: "Unlock ssh/prod" });
    await form.getByLabel("Passphrase").fill("wrong");
    await form.getByRole("button", { name: "Unlock" }).click();
    await page.getByText("The passphrase does not open the key.").waitFor();
    assert.equal(await form.getByLabel("Passphrase").inputValue(), "");
    await form.getByLabel("Passphrase").fill(PASSPHRASE);
    await form.getByRole("button", { name: "Unlock" }).click();
    await page.getByText("The key is unlocked.").waitFor();
  });
});
