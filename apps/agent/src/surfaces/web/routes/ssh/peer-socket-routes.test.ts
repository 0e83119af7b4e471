import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { until } from "@devplat/testkit";
import { MemoryLoan } from "../../../forwards/memory-loan.test-kit.ts";
import { MemoryRemotes, remoteView } from "../../../forwards/memory-remotes.test-kit.ts";
import { startTestServer, type Answer, type TestServer } from "../../server.test-kit.ts";

const PAGE = "/ui/peer-socket/";
const NONE = { lent: [], added_policies: [], problem: null, asking: false };
const TIME = "2026-11-21T09:00:00.000Z";
const LENT = [{ created_at: TIME, expires_at: TIME, last_used_at: null, handouts: 1 }];

async function stand(): Promise<{
  server: TestServer;
  loan: MemoryLoan;
  readonly show: (tokens: object) => void;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const loan = new MemoryLoan();
  const remotes = new MemoryRemotes([remoteView("build")]);
  const server = await startTestServer({ peerLoan: loan, remotes, token: "hvs.held" });
  const show = (tokens: object): void => {
    const peers = {
      socket: "/run/peer.sock",
      offers: ["token"],
      token_handouts: 0,
      last_token_handout_at: null,
    };
    server.view.set({ status: { peers: { ...peers, tokens: { ...NONE, ...tokens } } } });
  };
  show({});
  return { server, loan, show, [Symbol.asyncDispose]: () => server.stop() };
}

function post(
  server: TestServer,
  action: string,
  headers: Record<string, string> = { Origin: server.url },
): Promise<Answer> {
  const type = { "Content-Type": "application/x-www-form-urlencoded" };
  return server.send(PAGE, { method: "POST", headers: { ...type, ...headers }, body: `action=${action}` });
}

describe("the page of the peer socket", () => {
  it("asks for consent live, on its page and on the overview", async () => {
    await using site = await stand();
    const { server, show } = site;
    assert.match((await server.send(PAGE)).body, /None\. The host gets one/);
    const stream = await server.open("/ui/sse?show=peer-socket");
    let seen = "";
    stream.setEncoding("utf8").on("data", (chunk: string) => (seen += chunk));
    show({ asking: true });
    await until(() => seen.includes('value="allow"'));
    stream.destroy();
    for (const path of ["/ui/", "/ui/rules/"]) {
      assert.match(
        (await server.send(path)).body,
        /waits for your answer\.\s*<a href="\/ui\/peer-socket\/">/,
      );
    }
    assert.match((await server.send("/ui/remotes/")).body, /Peer socket<\/a>[^]*asks for a token/);
  });

  it("allows, refuses and revokes", async () => {
    await using site = await stand();
    const { server, loan, show } = site;
    show({ asking: true, lent: LENT });
    const allowed = await post(server, "allow");
    assert.deepEqual([allowed.status, allowed.headers.location], [303, `${PAGE}?done=consent_given`]);
    assert.equal((await post(server, "refuse")).status, 409);
    assert.equal((await post(server, "revoke")).headers.location, `${PAGE}?done=tokens_revoked`);
    assert.equal((await post(server, "other")).status, 422);
    assert.deepEqual(loan.calls, [true, false, "revoke"]);
  });

  it("does nothing for a form of another site, and is off without a socket", async () => {
    await using site = await stand();
    for (const headers of [{}, { Origin: "https://evil.example.test" }]) {
      assert.equal((await post(site.server, "allow", headers)).status, 403);
    }
    assert.deepEqual(site.loan.calls, []);
    await using off = await startTestServer({ token: "hvs.held" });
    assert.match((await off.send(PAGE)).body, /The peer socket is off/);
    assert.equal((await post(off, "revoke")).status, 404);
  });
});
