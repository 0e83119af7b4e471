import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { describe, it } from "node:test";
import { MAX_STREAMS } from "@devplat/web-kit";
import { until } from "@devplat/testkit";
import type { RemoteView } from "../../../../remote-view.ts";
import { RemotesFileError } from "../../../forwards/errors/forward-error.ts";
import type { OfferedKey } from "../../../forwards/host-keys.ts";
import {
  failedDial,
  fingerprintOf,
  MemoryRemotes,
  remoteView,
} from "../../../forwards/memory-remotes.test-kit.ts";
import { requestOpenLink } from "../../../socket/open-link.ts";
import { startTestServer, type Answer, type TestServer } from "../../server.test-kit.ts";

const EVIL = `<script>document.title="owned"</script>`;
const IPV6 = "fe80::1%eth0";

/** A key that a host shows. */
function offeredKey(host: string, letter: string, change: Partial<OfferedKey> = {}): OfferedKey {
  return {
    host,
    type: "ssh-ed25519",
    fingerprint: fingerprintOf(letter),
    key: `ssh-ed25519 ${letter.repeat(68)}`,
    known: false,
    pinned: undefined,
    ...change,
  };
}

async function stand(
  remotes: readonly RemoteView[] = [remoteView("build"), remoteView(IPV6)],
): Promise<{ server: TestServer; memory: MemoryRemotes; [Symbol.asyncDispose](): Promise<void> }> {
  const memory = new MemoryRemotes(remotes);
  const server = await startTestServer({ remotes: memory, token: "hvs.held" });
  return { server, memory, [Symbol.asyncDispose]: () => server.stop() };
}

const PAGE = "/ui/remotes/build/";
const OFFERS = { "offer.token": "on", "offer.browse": "on", "offer.notify": "on", "offer.clipboard": "on" };
const FORM = { ...OFFERS, ask: "never", lend: "child" };

function post(
  server: TestServer,
  path: string,
  form: Readonly<Record<string, string>>,
  headers: Record<string, string> = { Origin: server.url },
): Promise<Answer> {
  return server.send(path, {
    method: "POST",
    headers: { "Content-Type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams(form).toString(),
  });
}

/** The hidden fields of a page's form, as a browser sends them again. */
function hiddenFields(body: string): Record<string, string> {
  const inputs = body.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g);
  const plain = (text: string): string =>
    text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  return Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, plain(value)]));
}

/** The text of a page without its markup. */
function textOf(body: string): string {
  return body.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");
}

describe("the page of all remotes", () => {
  it("names every state in words, with a mark of its colour [agent 26.20]", async () => {
    const states = [
      ["connected", "good", "Connected"],
      ["connecting", "warn", "Connecting"],
      ["reconnecting", "warn", "Reconnecting"],
      ["offline", "bad", "Offline"],
      ["authentication-error", "bad", "Authentication error"],
      ["host-key-error", "bad", "Host key error"],
      ["disabled", "idle", "Disabled"],
    ] as const;
    await using site = await stand(states.map(([state]) => remoteView(`host-${state}`, { state })));
    const { body } = await site.server.send("/ui/remotes/");
    for (const [state, mark, word] of states) {
      const row = body.slice(body.indexOf(`/ui/remotes/host-${state}/`));
      assert.match(row, new RegExp(`^[^]{0,400}?<span class="status ${mark}">${word}</span>`), state);
    }
    assert.match(textOf(body), /1 connected 2 connecting 3 not connected 1 disabled/);
  });

  it("explains itself without remotes, with the command", async () => {
    await using site = await stand([]);
    const { body } = await site.server.send("/ui/remotes/");
    assert.match(body, /No remotes yet/);
    assert.match(body, /agent ssh add HOST/);
    assert.match(body, /<details class="reveal" >/);
  });

  it("has its form open where a link asks for it", async () => {
    await using site = await stand();
    const isOpen = async (query: string): Promise<boolean> =>
      /<details class="reveal" open>/.test((await site.server.send(`/ui/remotes/${query}`)).body);
    assert.deepEqual([await isOpen(""), await isOpen("?add")], [false, true]);
  });

  it("puts nothing of a host, a server or a file into the page as markup [agent 26.19]", async () => {
    const error = { class: EVIL, message: `banner ${EVIL}`, advice: EVIL };
    const tokens = { lent: [], added_policies: [EVIL], problem: EVIL, asking: true };
    const host_key = { type: EVIL, fingerprint: EVIL, key: EVIL };
    const evil = { error, tokens, host_key, remote_socket: EVIL, remote_socket_expanded: EVIL };
    const name = `"><img src=x onerror=alert(1)>`;
    await using site = await stand([remoteView(name, { ...evil, user: EVIL, proxy_jump: EVIL })]);
    site.memory.problem = EVIL;
    site.memory.offered = [offeredKey(EVIL, "A", { type: EVIL, fingerprint: EVIL, pinned: EVIL })];
    const page = `/ui/remotes/${encodeURIComponent(name)}/`;
    const bodies = [
      await site.server.send("/ui/remotes/"),
      await site.server.send(page),
      await post(site.server, page, { action: "repin", confirmed: `${name} ${EVIL}` }),
      await post(site.server, "/ui/remotes/", { ...FORM, host: EVIL, user: EVIL, port: EVIL }),
      await post(site.server, page, { ...FORM, action: "save", port: EVIL }),
    ];
    for (const { status, body } of bodies) {
      assert.ok(status < 500 && body.includes("&lt;script&gt;"), String(status));
      assert.ok(!body.includes(EVIL) && !body.includes("<img src=x"), "markup is escaped");
    }
  });

  it("names the line of a file that is not valid", async () => {
    await using site = await stand();
    site.memory.problem = "/home/ada/.config/daemon/ssh.yaml:3:5: unknown key hots";
    for (const path of ["/ui/remotes/", PAGE]) {
      assert.match((await site.server.send(path)).body, /ssh\.yaml:3:5: unknown key hots/);
    }
  });
});

describe("adding a remote on the page", () => {
  it("asks for each key on the way, preselects none, and saves with what was confirmed [agent 26.21]", async () => {
    await using site = await stand([]);
    const { server, memory } = site;
    memory.offered = [offeredKey("jump:22", "J", { known: true }), offeredKey("new:2222", "N")];
    const first = await post(server, "/ui/remotes/", {
      ...FORM,
      host: "new",
      port: "2222",
      proxy_jump: "jump",
    });
    assert.equal(first.status, 200);
    const firstText = textOf(first.body);
    assert.match(firstText, /Is this the key of jump:22\?/);
    assert.match(firstText, new RegExp(`ssh-ed25519 .*${fingerprintOf("J")} .*has exactly this key`));
    assert.match(first.body, /<input[^>]*name="confirm"[^>]*required/);
    assert.doesNotMatch(first.body, /<input[^>]*\bchecked\b/);
    assert.deepEqual(memory.list(), []);

    // Without the mark nothing is confirmed.
    const again = await post(server, "/ui/remotes/", hiddenFields(first.body));
    assert.match(textOf(again.body), /Is this the key of jump:22\?/);

    const second = await post(server, "/ui/remotes/", {
      ...hiddenFields(first.body),
      confirm: fingerprintOf("J"),
    });
    assert.match(
      textOf(second.body),
      /Is this the key of new:2222\?.*does not have this key.*confirmed before/,
    );
    assert.match(textOf(second.body), new RegExp(`jump:22 ${fingerprintOf("J")}`));
    const third = await post(server, "/ui/remotes/", {
      ...hiddenFields(second.body),
      confirm: fingerprintOf("N"),
    });
    assert.deepEqual([third.status, third.headers.location], [303, "/ui/remotes/new/?done=remote_added"]);
    assert.deepEqual(memory.calls.at(-1), [
      "add",
      "new",
      {
        host: "new",
        settings: { port: 2222, proxy_jump: "jump" },
        hostKey: undefined,
        accepted: [fingerprintOf("J"), fingerprintOf("N")],
        force: false,
      },
    ]);
    assert.match(
      (await server.send("/ui/remotes/new/?done=remote_added")).body,
      /Added\. The daemon connects now\./,
    );
  });

  it("shows a failed dial with its class and its advice, and keeps what was typed", async () => {
    await using site = await stand([]);
    site.memory.failure = failedDial("ada@new: Permission denied (publickey).");
    const { status, body } = await post(site.server, "/ui/remotes/", {
      ...FORM,
      host: "new",
      user: "ada",
      policies: "one",
    });
    assert.equal(status, 422);
    assert.match(
      body,
      /role="alert"[^]*<code>authentication<\/code> ada@new: Permission denied \(publickey\)\./,
    );
    assert.match(body, /name="host"\s+value="new"/);
    assert.match(body, /name="user"\s+value="ada"/);
    assert.match(body, /name="policies"\s+value="one"/);
    assert.match(body, /<details class="reveal" open>/);
    assert.deepEqual(site.memory.list(), []);
    const forced = await post(site.server, "/ui/remotes/", { ...FORM, host: "new", action: "force" });
    assert.equal(forced.status, 303);
    assert.equal(site.memory.list().length, 1);
  });

  it("names the fault of each field, and calls nothing", async () => {
    await using site = await stand([]);
    const form = { ...FORM, host: "-oProxyCommand=x", port: "70000", token_ttl: "soon" };
    const { status, body } = await post(site.server, "/ui/remotes/", form);
    assert.equal(status, 422);
    for (const id of ["host", "port", "token-ttl"]) {
      assert.match(
        body,
        new RegExp(`id="remote-${id}"[^>]*aria-describedby="remote-${id}-about"[^>]*aria-invalid="true"`),
      );
    }
    assert.match(body, /Expected a port from 1 to 65535\./);
    assert.deepEqual(site.memory.calls, []);
  });

  it("leads to a remote that exists, and says that a file is not valid", async () => {
    await using site = await stand();
    const exists = await post(site.server, "/ui/remotes/", { ...FORM, host: "build" });
    assert.equal(exists.status, 409);
    assert.match(exists.body, /<a href="\/ui\/remotes\/build\/">Show build<\/a>/);
    site.memory.failure = new RemotesFileError("Cannot read ssh.yaml:3:5: unknown key", 3);
    const invalid = await post(site.server, "/ui/remotes/", { ...FORM, host: "other" });
    assert.equal(invalid.status, 409);
    assert.match(textOf(invalid.body), /Not done: Cannot read ssh\.yaml:3:5: unknown key\./);
  });
});

describe("the page of a remote", () => {
  it("is at the encoded host, in any case, and elsewhere there is none", async () => {
    await using site = await stand();
    for (const path of [PAGE, "/ui/remotes/BUILD/", "/ui/remotes/fe80%3A%3A1%25eth0/"]) {
      assert.equal((await site.server.send(path)).status, 200, path);
    }
    const bare = await site.server.send("/ui/remotes/fe80::1%25eth0");
    assert.deepEqual([bare.status, bare.headers.location], [303, "/ui/remotes/fe80%3A%3A1%25eth0/"]);
    for (const path of ["/ui/remotes/none/", "/ui/remotes/%ff/", "/ui/remotes/a/b/"]) {
      assert.equal((await site.server.send(path)).status, 404, path);
      assert.equal((await post(site.server, path, { action: "delete" })).status, 404, path);
    }
    assert.deepEqual(site.memory.calls, []);
  });

  it("saves only the changed settings [agent 26.22]", async () => {
    await using site = await stand();
    const before = hiddenFields((await site.server.send(PAGE)).body);
    const form = { ...FORM, ...before, action: "save", port: "22", token_ttl: "15m", user: "bob" };
    const socket = { remote_socket: "~/.ssh/daemon.test.sock" };
    // Somebody else changes the port in the meantime.
    site.memory.change("build", { port: 2222 });
    const saved = await post(site.server, PAGE, { ...form, ...socket });
    assert.deepEqual([saved.status, saved.headers.location], [303, `${PAGE}?done=remote_saved`]);
    assert.deepEqual(site.memory.calls, [["edit", "build", { user: "bob" }]]);
    assert.equal(site.memory.get("build").port, 2222);
    const unchanged = await post(site.server, PAGE, { ...form, ...socket, user: "" });
    assert.equal(unchanged.headers.location, `${PAGE}?done=remote_unchanged`);
  });

  it("keeps refused settings in the form", async () => {
    await using site = await stand();
    site.memory.failure = new RemotesFileError("Cannot write ssh.yaml:3:5: unknown key", 3);
    const { status, body } = await post(site.server, PAGE, { ...FORM, action: "save", user: "bob" });
    assert.equal(status, 409);
    assert.match(body, /name="user"\s+value="bob"/);
    const wrong = await post(site.server, PAGE, { ...FORM, action: "save", port: "x" });
    assert.equal(wrong.status, 422);
    assert.match(wrong.body, /name="port"\s+value="x"/);
  });

  const actions: [string, Record<string, string>, unknown[], string][] = [
    ["enable", {}, ["edit", "build", { enabled: true }], `${PAGE}?done=remote_enabled`],
    ["disable", {}, ["edit", "build", { enabled: false }], `${PAGE}?done=remote_disabled`],
    ["retry", {}, ["retry", "build"], `${PAGE}?done=remote_retried`],
    ["revoke", {}, ["revoke", "build"], `${PAGE}?done=tokens_revoked`],
    ["allow", {}, ["consent", "build", true], `${PAGE}?done=consent_given`],
    ["refuse", {}, ["consent", "build", false], `${PAGE}?done=consent_refused`],
    ["delete", {}, ["remove", "build"], "/ui/remotes/?done=remote_deleted"],
  ];
  for (const [action, fields, call, location] of actions) {
    it(`does what its button says: ${action}`, async () => {
      await using site = await stand();
      const done = await post(site.server, PAGE, { action, ...fields });
      assert.deepEqual([done.status, done.headers.location], [303, location]);
      assert.deepEqual(site.memory.calls, [call]);
      assert.doesNotMatch(textOf((await site.server.send(location)).body), /undefined/);
    });
  }

  it("says that an answer comes late when no program waits for it any more", async () => {
    await using site = await stand();
    site.memory.isAsking = false;
    for (const action of ["allow", "refuse"]) {
      const { status, body } = await post(site.server, PAGE, { action });
      assert.equal(status, 409);
      assert.match(textOf(body), /Nobody waits for this answer any more/);
    }
  });

  it("refuses a form without an action", async () => {
    await using site = await stand();
    assert.equal((await post(site.server, PAGE, {})).status, 422);
    assert.deepEqual(site.memory.calls, []);
  });

  it("offers to check the key first while the host has another one", async () => {
    await using site = await stand([remoteView("build", { state: "host-key-error" }), remoteView("up")]);
    const { body } = await site.server.send(PAGE);
    assert.match(textOf(body), /Host key error.*Check the key.*Retry now.*Address/);
    assert.doesNotMatch((await site.server.send("/ui/remotes/up/")).body, /Check the key/);
  });

  it("asks for consent only while a program waits for it", async () => {
    await using site = await stand();
    assert.doesNotMatch((await site.server.send(PAGE)).body, /value="allow"/);
    const { tokens } = site.memory.get("build");
    site.memory.change("build", { tokens: { ...tokens, asking: true } });
    assert.match((await site.server.send(PAGE)).body, /value="allow"[^]*value="refuse"/);
  });

  it("shows the pinned and the offered key before it pins another one", async () => {
    await using site = await stand();
    site.memory.offered = [offeredKey("build:22", "B", { pinned: fingerprintOf("A") })];
    const step = await post(site.server, PAGE, { action: "repin" });
    const text = textOf(step.body);
    assert.match(text, new RegExp(`${fingerprintOf("B")} .*${fingerprintOf("A")} .*is another key`));
    assert.doesNotMatch(step.body, /<input[^>]*\bchecked\b/);
    const done = await post(site.server, PAGE, { ...hiddenFields(step.body), confirm: fingerprintOf("B") });
    assert.equal(done.headers.location, `${PAGE}?done=host_key_pinned`);
    assert.deepEqual(site.memory.calls.at(-1), ["repin", "build", [fingerprintOf("B")]]);
  });

  it("says by what the host is trusted", async () => {
    await using site = await stand([
      remoteView("pin"),
      remoteView("ca", { trust: "ca", host_key: null }),
      remoteView("none", { trust: "none", host_key: null, state: "host-key-error" }),
      remoteView("unchecked", { trust: "none" }),
    ]);
    for (const [host, words] of [
      ["pin", /connects only to a host that has this key/],
      ["ca", /authority.*vouches for this host/],
      ["none", /does not know the key of this host/],
      ["unchecked", /not checked/],
    ] as const) {
      assert.match(textOf((await site.server.send(`/ui/remotes/${host}/`)).body), words);
    }
  });
});

describe("the keys of jump hosts", () => {
  it("are on the page of a remote, in the order of the way, each with its whole key", async () => {
    const keyOf = (host: string, letter: string): RemoteView["hop_keys"][number] => {
      const { type, fingerprint, key } = offeredKey(host, letter);
      return { host, type, fingerprint, key };
    };
    const hop_keys = [keyOf("near:22", "N"), keyOf(`far${EVIL}:2222`, "F")];
    await using site = await stand([remoteView("build", { hop_keys })]);
    const { body } = await site.server.send(PAGE);
    const order = ["Jump hosts", "near:22", fingerprintOf("N"), "N".repeat(68), "far", fingerprintOf("F")];
    assert.match(textOf(body), new RegExp(order.join("[^]*")));
    assert.doesNotMatch(body, /<script>document/);
    site.memory.change("build", { hop_keys: [] });
    assert.doesNotMatch((await site.server.send(PAGE)).body, /near:22|These keys are pinned/);
  });
});

describe("the remotes' pages and callers without access", () => {
  it("do nothing for a form of another site, or without an Origin", async () => {
    await using site = await stand();
    for (const headers of [{}, { Origin: "null" }, { Origin: "https://evil.example.test" }]) {
      for (const [path, form] of [
        ["/ui/remotes/", { ...FORM, host: "evil" }],
        [PAGE, { action: "delete" }],
        [PAGE, { action: "allow" }],
      ] as const) {
        const refused = await post(site.server, path, form, headers);
        assert.equal(refused.status, 403);
      }
    }
    assert.deepEqual(site.memory.calls, []);
  });

  it("redirect while locked or signed out, and refuse forms and streams", async () => {
    const memory = new MemoryRemotes([remoteView("build")]);
    await using locked = await startTestServer({ remotes: memory, requireUnlock: true });
    await using out = await startTestServer({ remotes: memory });
    out.view.set({ status: { authenticated: false } });
    for (const server of [locked, out]) {
      for (const path of ["/ui/remotes/", PAGE, "/ui/agent/"]) {
        const page = await server.send(path);
        assert.deepEqual([page.status, page.headers.location], [303, "/"], path);
        assert.doesNotMatch(page.body, /build/);
      }
      assert.equal((await server.send("/ui/sse/ssh")).status, 401);
      assert.equal((await post(server, PAGE, { action: "delete" })).status, 401);
    }
    assert.deepEqual(memory.calls, []);
  });
});

/** Reads a stream as it comes. */
function collect(stream: IncomingMessage): { text: string } {
  const seen = { text: "" };
  stream.setEncoding("utf8").on("data", (chunk: string) => (seen.text += chunk));
  return seen;
}

describe("/ui/sse/ssh", () => {
  it("begins with the state, and tells each change of a state or an entry [agent 26.23]", async () => {
    await using site = await stand([remoteView("build")]);
    const stream = await site.server.open("/ui/sse/ssh");
    assert.match(String(stream.headers["content-type"]), /^text\/event-stream/);
    const seen = collect(stream);
    await until(() => seen.text.includes("live-remotes"));
    const [, json = ""] = /^event: remotes\ndata: (.*)$/m.exec(seen.text) ?? [];
    assert.deepEqual(JSON.parse(json), { remotes: site.memory.list(), file_problem: null });
    for (const [change, words] of [
      [() => site.memory.change("build", { state: "offline" }), "Offline"],
      [() => site.memory.set([...site.memory.list(), remoteView("second")]), "/ui/remotes/second/"],
      [() => site.memory.set([]), "No remotes yet"],
    ] as const) {
      assert.ok(!seen.text.includes(words), words);
      change();
      await until(() => seen.text.includes(words));
    }
    stream.destroy();
  });

  it("tells a page of one remote about that one, and when it is removed", async () => {
    await using site = await stand();
    const stream = await site.server.open(`/ui/sse/ssh?show=${encodeURIComponent(`remote:${IPV6}`)}`);
    const seen = collect(stream);
    site.memory.change(IPV6, { state: "reconnecting" });
    await until(() => seen.text.includes("Reconnecting"));
    assert.ok(!seen.text.includes("live-remotes"));
    site.memory.set([remoteView("build")]);
    await until(() => seen.text.includes("has been removed"));
    stream.destroy();
  });

  it("ends with the session and with the sign-in", async () => {
    const remotes = new MemoryRemotes([remoteView("build")]);
    await using server = await startTestServer({ remotes, requireUnlock: true, token: "hvs.held" });
    const link = new URL(await requestOpenLink(server.runtimeFolder));
    const opened = await server.send(link.pathname + link.search);
    const cookie = { Cookie: String(opened.headers["set-cookie"]).split(";")[0] ?? "" };
    const stream = await server.open("/ui/sse/ssh", cookie);
    assert.equal(stream.statusCode, 200);
    const ended = once(stream.resume(), "end");
    // The second use of a link ends its session.
    await server.send(link.pathname + link.search);
    await ended;

    await using other = await startTestServer({ remotes, token: "hvs.held" });
    const signedIn = await other.open("/ui/sse/ssh");
    const signedOut = once(signedIn.resume(), "end");
    other.view.set({ status: { authenticated: false } });
    await signedOut;
  });

  it("is not opened for a page of another site", async () => {
    await using site = await stand();
    for (const headers of [{ "Sec-Fetch-Site": "cross-site" }, { Origin: "https://evil.example.test" }]) {
      assert.equal((await site.server.send("/ui/sse/ssh", { headers })).status, 403);
    }
  });

  it(`counts with the other streams: the oldest of more than ${MAX_STREAMS} ends`, async () => {
    await using site = await stand();
    const oldest = await site.server.open("/ui/sse/ssh");
    const ended = once(oldest.resume(), "end");
    const streams: IncomingMessage[] = [];
    for (let count = 0; count < MAX_STREAMS; count++) streams.push(await site.server.open("/ui/sse/ssh"));
    await ended;
    assert.equal(streams.filter(({ readableEnded }) => !readableEnded).length, MAX_STREAMS);
    for (const stream of streams) stream.destroy();
  });
});
