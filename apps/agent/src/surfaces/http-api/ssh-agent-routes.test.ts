import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { HandClock } from "../../sync/clock.test-kit.ts";
import { AgentRefusal } from "../ssh-agent/agent-refusal.ts";
import { limitUnlocking } from "../ssh-agent/server/unlock-limit.ts";
import { startTestServer, type Answer, type TestServer } from "../web/server.test-kit.ts";
import {
  identityView,
  MemorySshAgent,
  PASSPHRASE,
  sshAgentStatus,
} from "../ssh-agent/memory-ssh-agent.test-kit.ts";

const PATH = "/api/v1/ssh-agent";
const WAITING = {
  id: "0123",
  kind: "passphrase",
  identity: "ada@work",
  fingerprint: "SHA256:a",
  facts: [],
  asked_at: "2026-01-01T00:00:00.000Z",
  expires_at: "2026-01-01T00:00:30.000Z",
} as const;

function code(response: Answer): unknown {
  return (JSON.parse(response.body) as { code?: unknown }).code;
}

describe("the SSH agent of the JSON API", () => {
  let server: TestServer;
  let agent: MemorySshAgent;
  before(async () => {
    agent = new MemorySshAgent(
      sshAgentStatus({
        sources: [{ name: "team", source: "kv", error: null, identities: [identityView("ada@work")] }],
        questions: [{ ...WAITING, facts: [] }],
      }),
    );
    server = await startTestServer({ sshAgent: agent });
    // Keys that were opened before can be used without a store token.
    server.view.set({ status: { authenticated: false } });
  });
  after(() => server.stop());

  async function post(path: string, body?: string, headers: Record<string, string> = {}): Promise<Answer> {
    const { token } = JSON.parse((await server.send("/api/v1/csrf")).body) as { token: string };
    return await server.send(PATH + path, {
      method: "POST",
      headers: { "X-CSRF-Token": token, "Content-Type": "application/json", ...headers },
      ...(body !== undefined && { body }),
    });
  }

  it("GET gives the state; refresh looks the keys up first", async () => {
    const response = await server.send(PATH);
    assert.equal(response.status, 200);
    assert.deepEqual(JSON.parse(response.body), agent.status());
    const refreshed = await post("/refresh");
    assert.deepEqual([refreshed.status, JSON.parse(refreshed.body)], [200, agent.status()]);
    assert.deepEqual(agent.calls.splice(0), [["refresh"]]);
  });

  it("keys/unlock opens a key, and the passphrase reaches no log and no response", async () => {
    const body = JSON.stringify({ name: "ada@work", passphrase: PASSPHRASE });
    const opened = await post("/keys/unlock", body);
    assert.deepEqual([opened.status, opened.body], [204, ""]);
    const wrong = await post(
      "/keys/unlock",
      JSON.stringify({ name: "ada@work", passphrase: "hunter2 wrong" }),
    );
    assert.deepEqual([wrong.status, code(wrong)], [422, "passphrase_wrong"]);
    assert.deepEqual(agent.calls.splice(0), [
      ["unlock", "ada@work"],
      ["unlock", "ada@work"],
    ]);
    const seen = server.log.join("\n") + opened.body + wrong.body;
    assert.doesNotMatch(seen, /hunter2|correct horse/);
  });

  it("keys/show and an answer to a question reach the SSH agent", async () => {
    assert.equal((await post("/keys/show")).status, 204);
    assert.equal((await post("/questions/0123", JSON.stringify({ passphrase: PASSPHRASE }))).status, 204);
    const late = await post("/questions/0123", JSON.stringify({ confirmed: false }));
    assert.deepEqual([late.status, code(late)], [404, "not_found"]);
    assert.deepEqual(agent.calls.splice(0), [
      ["show"],
      ["answer", "0123", PASSPHRASE],
      ["answer", "0123", false],
    ]);
  });

  it("bodies that are not as described are refused, without a quotation", async () => {
    for (const [path, body] of [
      ["/keys/unlock", "{}"],
      ["/keys/unlock", '{"name":"ada@work","passphrase":""}'],
      ["/keys/unlock", '{"name":"ada@work","passphrase":["hunter2"]}'],
      ["/keys/unlock", '{"name":"ada@work","passphrase":"hunter2","more":1}'],
      ["/keys/unlock", `{"name":"a","passphrase":"hunter2${"x".repeat(1024)}"}`],
      ["/keys/unlock", "hunter2"],
      ["/keys/unlock", undefined],
      ["/questions/0123", '{"confirmed":"hunter2"}'],
      ["/questions/0123", '{"confirmed":true,"passphrase":"hunter2"}'],
      ["/questions/0123", undefined],
      ["/refresh", '{"other":"hunter2"}'],
    ] as const) {
      const response = await post(path, body);
      assert.deepEqual([response.status, code(response)], [400, "bad_request"], `${path} ${body}`);
      assert.doesNotMatch(response.body + server.log.join("\n"), /hunter2/);
    }
    const form = await post("/keys/unlock", "name=a&passphrase=hunter2", {
      "Content-Type": "application/x-www-form-urlencoded",
    });
    assert.deepEqual([form.status, code(form)], [415, "unsupported_media_type"]);
    const large = await post("/keys/unlock", `"${"x".repeat(64 * 1024)}"`);
    assert.deepEqual([large.status, code(large)], [413, "body_too_large"]);
    assert.deepEqual(agent.calls, []);
  });

  it("changes need a CSRF token, and a page of another origin reads nothing", async () => {
    for (const path of ["/refresh", "/keys/unlock", "/keys/show", "/questions/0123"]) {
      const response = await server.send(PATH + path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ name: "ada@work", passphrase: PASSPHRASE }),
      });
      assert.deepEqual([response.status, code(response)], [403, "csrf_refused"], path);
      const foreign = await post(path, undefined, { Origin: "http://evil.example" });
      assert.deepEqual([foreign.status, code(foreign)], [403, "origin_refused"], path);
    }
    const read = await server.send(PATH, { headers: { "Sec-Fetch-Site": "cross-site" } });
    assert.deepEqual([read.status, code(read)], [403, "origin_refused"]);
    assert.deepEqual(agent.calls, []);
  });

  it("a port that has to be unlocked gives nothing to a program without the key", async () => {
    await using locked = await startTestServer({ sshAgent: agent, requireUnlock: true });
    const response = await locked.send(PATH);
    assert.deepEqual([response.status, code(response)], [401, "unlock_required"]);
  });

  it("while the SSH agent is off, every request is answered by 404 ssh_agent_off", async () => {
    await using off = await startTestServer();
    const { token } = JSON.parse((await off.send("/api/v1/csrf")).body) as { token: string };
    const response = await off.send(PATH);
    assert.deepEqual([response.status, code(response)], [404, "ssh_agent_off"]);
    const unlock = await off.send(`${PATH}/keys/unlock`, {
      method: "POST",
      headers: { "X-CSRF-Token": token, "Content-Type": "application/json" },
      body: JSON.stringify({ name: "a", passphrase: "b" }),
    });
    assert.deepEqual([unlock.status, code(unlock)], [404, "ssh_agent_off"]);
  });
});

describe("limitUnlocking", () => {
  it("after five wrong passphrases none is tried until time has passed", async () => {
    const clock = new HandClock();
    const tried: string[] = [];
    const unlock = limitUnlocking(async (_name, passphrase) => {
      tried.push(passphrase.reveal());
      if (passphrase.reveal() !== "right") throw new AgentRefusal("passphrase_wrong", "wrong");
    }, clock);
    const attempt = (passphrase: string): Promise<void> => unlock("key", new Secret(passphrase));
    for (let i = 0; i < 10; i++) await attempt("right");
    for (let i = 0; i < 5; i++) await assert.rejects(attempt("wrong"), { code: "passphrase_wrong" });
    await assert.rejects(attempt("right"), { code: "too_many_tries", hint: "Try again in 12 s." });
    assert.equal(tried.length, 15);
    clock.advance(12_000);
    await attempt("right");
    await assert.rejects(attempt("wrong"), { code: "passphrase_wrong" });
    await assert.rejects(attempt("right"), { code: "too_many_tries" });
  });

  it("a key that does not exist costs no try", async () => {
    const unlock = limitUnlocking(
      () => Promise.reject(new AgentRefusal("key_unknown", "no key")),
      new HandClock(),
    );
    for (let i = 0; i < 10; i++) await assert.rejects(unlock("x", new Secret("y")), { code: "key_unknown" });
  });
});
