import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { until } from "@devplat/testkit";
import {
  identityView,
  MemorySshAgent,
  PASSPHRASE,
  sshAgentStatus,
} from "../../../ssh-agent/memory-ssh-agent.test-kit.ts";
import { startTestServer, type Answer, type TestServer } from "../../server.test-kit.ts";
import { remaining } from "../../pages/ssh-agent/identities.ts";

const PAGE = "/ui/agent/";
const EVIL = `<script>document.title="owned"</script>`;
const PROD = identityView("ssh/prod", { state: "needs-passphrase" });

const QUESTION: ReturnType<MemorySshAgent["status"]>["questions"][number] = {
  id: "q1",
  kind: "confirm",
  identity: "ssh/github",
  fingerprint: "SHA256:abc",
  facts: [
    { text: "to github.com", verified: true },
    { text: "asked by git", verified: false },
  ],
  asked_at: "2026-11-21T09:04:40.000Z",
  expires_at: "2026-11-21T09:05:10.000Z",
};

function source(
  change: Partial<ReturnType<MemorySshAgent["status"]>["sources"][number]> = {},
): ReturnType<MemorySshAgent["status"]>["sources"][number] {
  return { name: "enrolments", source: "enrolments", error: null, identities: [PROD], ...change };
}

async function stand(
  change: Parameters<typeof sshAgentStatus>[0] = { sources: [source()] },
): Promise<{ server: TestServer; agent: MemorySshAgent; [Symbol.asyncDispose](): Promise<void> }> {
  const agent = new MemorySshAgent(sshAgentStatus(change));
  const server = await startTestServer({ sshAgent: agent, token: "hvs.held" });
  return { server, agent, [Symbol.asyncDispose]: () => server.stop() };
}

function post(
  server: TestServer,
  form: Readonly<Record<string, string>>,
  headers: Record<string, string> = { Origin: server.url },
): Promise<Answer> {
  return server.send(PAGE, {
    method: "POST",
    headers: { "Content-Type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams(form).toString(),
  });
}

function textOf({ body }: Answer): string {
  return body.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");
}

describe("the page of the SSH agent", () => {
  it("says how to turn it on while it is off, and does nothing then", async () => {
    await using server = await startTestServer({ token: "hvs.held" });
    const off = await server.send(PAGE);
    assert.match(off.body, /The SSH agent is off/);
    assert.match(off.body, /agent:\n {2}enabled: true/);
    assert.equal((await post(server, { action: "refresh" })).status, 404);
  });

  it("lists identities by source, with restrictions, validity and last use [agent 26.24]", async () => {
    await using site = await stand({
      sources: [
        source({
          identities: [
            identityView("ssh/github", {
              hosts: ["github.com"],
              via: ["jump"],
              namespaces: ["git"],
              signatures: 2,
              last_use: {
                at: "2026-11-21T09:01:00.000Z",
                destination: "github.com",
                forwarded: true,
                program: "/usr/bin/ssh",
              },
            }),
            PROD,
          ],
        }),
        source({
          name: "work",
          source: "ca",
          error: "permission denied",
          identities: [identityView("cert", { certificate_expires_at: "2026-11-21T09:20:00.000Z" })],
        }),
      ],
      refusals: [{ at: "2026-11-21T09:00:00.000Z", fingerprint: "SHA256:zzz", reason: "nobody answered" }],
      withheld: 3,
    });
    const text = textOf(await site.server.send(PAGE));
    assert.match(
      text,
      /enrolments .*ssh\/github ssh-ed25519 SHA256:.*hosts github\.com via jump signatures for git/,
    );
    assert.match(text, /for github\.com by \/usr\/bin\/ssh forwarded 2 signatures/);
    assert.match(text, /Needs passphrase Unlock ssh\/prod/);
    assert.match(text, /work certificate authority permission denied .*Certificate until [\d:]+ , 15m left/);
    assert.match(text, /Refused .*Nobody answered\. SHA256:zzz/);
    assert.match(text, /3 keys with hosts were not offered/);
  });

  it("names the sockets that are not open, and the reason", async () => {
    const { socket } = sshAgentStatus();
    const other = { socket: "/home/ada/git.sock", reason: `it is in use: ${EVIL}` };
    await using site = await stand({ socket_problems: [other] });
    const page = await site.server.send(PAGE);
    const { body } = page;
    assert.match(
      textOf(page),
      / Ready .* Not open \/home\/ada\/git\.sock : It is in use: .*agent reload tries again\./,
    );
    assert.ok(body.includes("&lt;script&gt;") && !body.includes(EVIL));
    site.agent.set({ socket_problems: [other, { socket, reason: "another program listens" }] });
    const text = textOf(await site.server.send(PAGE));
    assert.match(text, / Not open .* Not open .*ssh-agent\.sock : Another program listens\./);
    assert.doesNotMatch(text, / Ready /);
    site.agent.set({ socket_problems: [] });
    assert.doesNotMatch(textOf(await site.server.send(PAGE)), /Not open/);
  });

  it("counts remaining time in minutes", () => {
    const now = "2026-11-21T09:00:00.000Z";
    assert.equal(remaining("2026-11-21T20:56:59.000Z", now), "11h56m left");
    assert.equal(remaining("2026-11-21T09:00:59.000Z", now), "less than 1m left");
    assert.equal(remaining(now, now), "over");
  });

  it("puts nothing of a comment, a source or a question into the page as markup", async () => {
    const identity = identityView(EVIL, { type: EVIL, fingerprint: EVIL, hosts: [EVIL] });
    await using site = await stand({
      sources: [source({ name: EVIL, error: EVIL, identities: [identity] })],
      questions: [{ ...QUESTION, id: EVIL, identity: EVIL, facts: [{ text: EVIL, verified: false }] }],
      refusals: [{ at: QUESTION.asked_at, fingerprint: EVIL, reason: EVIL }],
    });
    const { body } = await site.server.send(PAGE);
    assert.ok(body.includes("&lt;script&gt;") && !body.includes(EVIL));
  });

  it("asks, with what is verified and what is only claimed", async () => {
    await using site = await stand({ questions: [QUESTION] });
    const text = textOf(await site.server.send(PAGE));
    assert.match(text, /May ssh\/github be used\? .*verified to github\.com claimed asked by git/);
    const refused = await post(site.server, { action: "refuse", question: "q1" });
    assert.equal(refused.headers.location, `${PAGE}?done=answer_refused`);
    assert.deepEqual(site.agent.calls, [["answer", "q1", false]]);
    const late = await post(site.server, { action: "allow", question: "q1" });
    assert.equal(late.status, 409);
    assert.match(textOf(late), /Nothing waits for this answer any more/);
  });

  it("takes a passphrase and never sends it back or logs it [agent 26.24]", async () => {
    await using site = await stand({
      sources: [source()],
      questions: [{ ...QUESTION, kind: "passphrase", facts: [] }],
    });
    const { server, agent } = site;
    const page = await server.send(`${PAGE}?unlock=${encodeURIComponent(PROD.fingerprint)}`);
    assert.equal([...page.body.matchAll(/<input[^>]*type="password"[^>]*autocomplete="off"/g)].length, 2);
    const unlock = { action: "unlock", fingerprint: PROD.fingerprint };
    const answers = [
      await post(server, { ...unlock, passphrase: `not ${PASSPHRASE}` }),
      await post(server, { ...unlock, passphrase: PASSPHRASE }),
      await post(server, { action: "passphrase", question: "q1", passphrase: PASSPHRASE }),
      await server.send(`${PAGE}?done=key_unlocked`),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [422, 303, 303, 200],
    );
    assert.match(answers[0]?.body ?? "", /aria-invalid="true"[^]*The passphrase does not open the key\./);
    assert.deepEqual(agent.calls.at(-1), ["answer", "q1", PASSPHRASE]);
    const said = `${answers.map(({ body, headers }) => body + JSON.stringify(headers)).join("")}${site.server.log.join("")}`;
    assert.ok(!said.includes("battery"), "the passphrase is in no page, header or log line");
  });

  it("shows hidden keys again, and looks keys up again", async () => {
    await using site = await stand({
      sources: [source({ identities: [identityView("a", { state: "hidden" })] })],
    });
    assert.match((await site.server.send(PAGE)).body, /Show hidden keys/);
    for (const action of ["show", "refresh"]) assert.equal((await post(site.server, { action })).status, 303);
    assert.deepEqual(site.agent.calls, [["show"], ["refresh"]]);
    assert.equal((await post(site.server, { action: "other" })).status, 422);
  });

  it("does nothing for a form of another site", async () => {
    await using site = await stand({ questions: [QUESTION] });
    for (const headers of [{}, { Origin: "null" }, { Origin: "https://evil.example.test" }]) {
      const form = { action: "allow", question: "q1" };
      assert.equal((await post(site.server, form, headers)).status, 403);
    }
    assert.deepEqual(site.agent.calls, []);
  });

  it("follows the agent live", async () => {
    await using site = await stand({});
    const stream = await site.server.open("/ui/sse?show=agent");
    let seen = "";
    stream.setEncoding("utf8").on("data", (chunk: string) => (seen += chunk));
    await until(() => seen.includes("No keys yet"));
    site.agent.set({ questions: [QUESTION] });
    await until(() => seen.includes("May ssh/github be used?"));
    stream.destroy();
  });
});
