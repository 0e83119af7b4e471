import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseFields } from "@devplat/secret-store";
import { TestOauthServer } from "../../../enrol/oauth-server.test-kit.ts";
import { startTestServer, type Answer, type TestServer } from "../server.test-kit.ts";

const SSH = "enrolments: {work/key: {engine: ssh, description: Key for work}}";
const PASSPHRASE = "planted-passphrase";

async function start(enrolments = ""): Promise<TestServer> {
  return await startTestServer({ configuration: `store: { driver: embedded }\n${enrolments}\n` });
}

function post(
  server: TestServer,
  path: string,
  form: Record<string, string> = {},
  headers: Record<string, string> = { Origin: server.url },
): Promise<Answer> {
  return server.send(path, { method: "POST", headers, body: new URLSearchParams(form).toString() });
}

/** Posts an action of an enrolment's page, and waits until nothing works on without the user. */
async function act(
  server: TestServer,
  path: string,
  action: string,
  more: Record<string, string> = {},
): Promise<Answer> {
  const answer = await post(server, `/ui/enrolments/${path}/`, { action, ...more });
  const { enrolments } = server;
  const isWorking = (): boolean =>
    enrolments.list().some(({ key, state }) => {
      const { form, visit } = enrolments.prompt(key);
      return state === "running" && form === undefined && visit === undefined;
    });
  while (isWorking()) {
    await new Promise<void>((resolve) => {
      const release = enrolments.onChange(() => {
        release();
        resolve();
      });
    });
  }
  return answer;
}
const answerKey = (server: TestServer, from = ""): Promise<Answer> =>
  act(server, "ssh/work/key", "answer", { "field.0": PASSPHRASE, "again.0": PASSPHRASE, from });
/** Runs an enrolment under `passphrase: recommended`, and leaves the passphrase empty. */
async function enrolWithoutPassphrase(server: TestServer, path: string): Promise<void> {
  await act(server, path, "start");
  await act(server, path, "answer", { "field.0": "", "again.0": "" });
}
const root = async (server: TestServer): Promise<string | undefined> =>
  (await server.send("/")).headers.location;
const REFRESH = /<noscript><meta http-equiv="refresh"/;

describe("root routing (GET /)", () => {
  it("not signed in: login view for the configured auth method [agent 20.1]", async () => {
    await using server = await start(SSH);
    server.view.set({ status: { authenticated: false } });
    assert.match((await server.send("/")).body, /action="\/login\/token"/);
  });

  it("/setup/ if signed in, with no enrolment complete and the wizard not left [agent 20.2]", async () => {
    await using server = await start(SSH);
    assert.equal(await root(server), "/setup/");
  });

  it("signed in otherwise: /ui/ [agent 20.3]", async () => {
    await using none = await start();
    assert.equal(await root(none), "/ui/", "nothing configured");
    await using left = await start(SSH);
    await post(left, "/setup/complete");
    assert.equal(await root(left), "/ui/", "left");
    await using skipped = await start(SSH);
    await act(skipped, "ssh/work/key", "skip");
    assert.equal(await root(skipped), "/ui/", "skipped out");
    await using held = await start(SSH);
    await held.store.write("work/key", parseFields(`{"private_key":"x"}`));
    assert.equal(await root(held), "/ui/", "the credential was there before this daemon had looked");
  });

  it("an unauthenticated visit to any /ui/ page, or the wizard, redirects to /", async () => {
    await using server = await start(SSH);
    server.view.set({ status: { authenticated: false } });
    for (const path of [
      "/ui/",
      "/ui/enrolments/",
      "/ui/enrolments/ssh/work/key/",
      "/ui/anything",
      "/setup/",
    ]) {
      const { status, headers } = await server.send(path);
      assert.deepEqual([status, headers.location], [303, "/"], path);
    }
  });
});

describe("wizard rules", () => {
  it("rule 1: appears only until an interactive enrolment is complete, or all settled [agent 21.1]", async () => {
    await using server = await start(
      "enrolments: {a: {engine: ssh, passphrase: recommended}, b: {engine: ssh}, c: {engine: ssh}}",
    );
    await act(server, "ssh/b", "skip");
    assert.equal(await root(server), "/setup/", "one skipped, two wait");
    await act(server, "ssh/c", "skip");
    assert.equal(await root(server), "/setup/", "one waits");
    await act(server, "ssh/a", "skip");
    assert.equal(await root(server), "/ui/", "every one is skipped");
    await using other = await start(
      "enrolments: {a: {engine: ssh, passphrase: recommended}, b: {engine: ssh}}",
    );
    await enrolWithoutPassphrase(other, "ssh/a");
    assert.equal(await root(other), "/ui/", "one has completed, another waits");
  });

  it("rule 1: a failed enrolment is not complete [agent 21.1]", async () => {
    await using server = await start(
      "enrolments: {a: {engine: github, host: 'http://127.0.0.1:1', client_id: x}}",
    );
    await act(server, "github/a", "start");
    assert.equal(server.enrolments.list()[0]?.state, "failed");
    assert.equal(await root(server), "/setup/");
  });

  it("rule 2: POST /setup/complete makes / the main site; /ui/enrolments/ has the rest [agent 21.2]", async () => {
    await using server = await start(SSH);
    await act(server, "ssh/work/key", "start");
    const left = await post(server, "/setup/complete");
    assert.deepEqual([left.status, left.headers.location], [303, "/ui/"]);
    assert.equal(await root(server), "/ui/");
    assert.equal(server.enrolments.list()[0]?.state, "pending", "abandoned, not skipped");
    const list = await server.send("/ui/enrolments/");
    assert.match(list.body, /href="\/ui\/enrolments\/ssh\/work\/key\/"/);
    assert.match((await server.send("/ui/")).body, /One enrolment waits for you/);
  });

  it("rule 2: a credential of an interactive enrolment makes / the main site for good [agent 21.3]", async () => {
    await using server = await start(SSH);
    await act(server, "ssh/work/key", "start");
    await answerKey(server);
    assert.equal(await root(server), "/ui/");
    // It is run again and fails. The user has still completed the setup.
    await act(server, "ssh/work/key", "start");
    assert.equal(await root(server), "/ui/");
  });

  it("rule 3: an enrolment without interaction is not in the wizard, and no setup [agent 21.4]", async () => {
    await using copy = await start("enrolments: {mirror: {engine: copy, from: shared/x}}");
    assert.equal(await root(copy), "/ui/", "never raises it");
    assert.equal((await copy.send("/setup/")).headers.location, "/ui/", "no wizard for it alone");
    await using both = await start(
      "enrolments: {mirror: {engine: copy, from: shared/x}, work/key: {engine: ssh}}",
    );
    await both.store.write("shared/x", parseFields(`{"a":"b"}`));
    await both.enrolments.start("mirror");
    assert.equal(await root(both), "/setup/", "a mirrored credential does not count");
    const { body } = await both.send("/setup/");
    assert.match(body, /work\/key/);
    assert.doesNotMatch(body, /mirror/);
  });

  it("rule 4: the control at the bottom is a skip button, or a link if nothing is left [agent 21.5]", async () => {
    await using server = await start(SSH);
    const before = (await server.send("/setup/")).body;
    assert.match(before, /action="\/setup\/complete"[^]*<button type="submit">Skip the rest<\/button>/);
    await act(server, "ssh/work/key", "start");
    assert.match((await answerKey(server, "setup")).headers.location ?? "", /^\/setup\/#setup-/);
    const after = (await server.send("/setup/")).body;
    assert.match(after, /<a class="button primary" href="\/ui\/">Continue to the main site<\/a>/);
    assert.doesNotMatch(after, /setup\/complete/);
  });

  it("rule 5: cards waiting for input stop auto-refreshing, others go on [agent 21.6]", async () => {
    const oauth = new TestOauthServer();
    await oauth.start();
    try {
      await using server = await start(
        `enrolments: {hub: {engine: github, host: "${oauth.url}", client_id: x}, work/key: {engine: ssh}}`,
      );
      const stream = await server.open("/ui/sse");
      let pushed = "";
      stream.setEncoding("utf8").on("data", (text: string) => (pushed += text));
      await act(server, "github/hub", "start");
      assert.match((await server.send("/setup/")).body, REFRESH, "something runs, nothing waits for input");
      await act(server, "ssh/work/key", "start");
      const asking = (await server.send("/setup/")).body;
      assert.doesNotMatch(asking, REFRESH, "what is typed must stay");
      const ids = [...asking.matchAll(/id="(setup-[\w-]+)"/g)].map(([, id]) => id);
      const waiting = ids.filter((id) => id?.endsWith("-asks"));
      assert.equal(waiting.length, 1);
      // The stream knows no element of the page that waits, so it cannot touch it.
      while (!pushed.includes("-asks")) await new Promise((resolve) => stream.once("data", resolve));
      for (const id of waiting) assert.ok(!pushed.includes(`hx-target="#${id}"`), "its element is no target");
      stream.destroy();
    } finally {
      oauth.stop();
    }
  });

  it("only a page of this daemon may leave the wizard [agent 25.8]", async () => {
    await using server = await start(SSH);
    for (const headers of [{}, { Origin: "null" }, { Origin: "https://evil.example.test" }]) {
      assert.equal(
        (await post(server, "/setup/complete", {}, headers as Record<string, string>)).status,
        403,
      );
    }
    assert.equal(await root(server), "/setup/");
  });
});

describe("status indicators of enrolments", () => {
  const look = async (server: TestServer): Promise<string> => (await server.send("/ui/enrolments/")).body;

  it("green: enrolled [agent 22.1]", async () => {
    await using server = await start("enrolments: {a: {engine: ssh, passphrase: recommended}}");
    await enrolWithoutPassphrase(server, "ssh/a");
    assert.match(await look(server), /<span class="status good">Enrolled<\/span>/);
  });

  it("orange: in progress [agent 22.2]", async () => {
    await using server = await start(SSH);
    await act(server, "ssh/work/key", "start");
    assert.match(await look(server), /<span class="status warn">In progress<\/span>/);
  });

  it("red: error [agent 22.3]", async () => {
    await using server = await start(
      "enrolments: {a: {engine: github, host: 'http://127.0.0.1:1', client_id: x}}",
    );
    await act(server, "github/a", "start");
    assert.match(await look(server), /<span class="status bad">Error<\/span>/);
  });

  it("grey: not started; a skipped enrolment shows that [agent 22.4]", async () => {
    await using server = await start(SSH);
    assert.match(await look(server), /<span class="status idle">Not started<\/span>/);
    await act(server, "ssh/work/key", "skip");
    assert.match(await look(server), /Not started<\/span>\s*<span class="badge">skipped/);
  });
});

describe("/ui/enrolments/", () => {
  it("groups by engine; only an engine with several enrolments is a folder [agent 26.7]", async () => {
    await using server = await start(
      "enrolments: {a: {engine: ssh}, b/c: {engine: ssh}, d: {engine: copy, from: shared/x}}",
    );
    const { body } = await server.send("/ui/enrolments/");
    assert.equal([...body.matchAll(/<details open>/g)].length, 1);
    assert.match(body, /<summary>ssh <span class="badge">2<\/span><\/summary>/);
    for (const path of ["ssh/a", "ssh/b/c", "copy/d"])
      assert.ok(body.includes(`href="/ui/enrolments/${path}/"`), path);
  });

  it("without any says where they come from", async () => {
    await using server = await start();
    assert.match((await server.send("/ui/enrolments/")).body, /No enrolments yet/);
  });
});

describe("/ui/enrolments/<engine>/<key>/", () => {
  it("is where the enrolment runs: start, what it asks, its answer, the stored secret [agent 26.8]", async () => {
    await using server = await start(SSH);
    const page = "/ui/enrolments/ssh/work/key/";
    assert.match((await server.send(page)).body, /value="start">Start</);
    const started = (await act(server, "ssh/work/key", "start")).headers.location ?? "";
    const asking = (await server.send(page)).body;
    assert.match(asking, /name="field\.0"/);
    // The browser goes on in the first field.
    assert.match(
      asking,
      new RegExp(`id="${started.replace(`${page}#`, "")}"\\s+type="password"\\s+name="field\\.0"`),
    );
    assert.match(asking, /name="again\.0"/);
    const done = await answerKey(server);
    assert.equal(done.status, 303);
    assert.equal(done.headers.location?.split("#")[0], page);
    assert.match((await server.send(page)).body, /href="\/ui\/secrets\/work\/key"/);
    const { fields } = await server.store.read("work/key");
    assert.deepEqual([...fields.keys()], ["private_key", "public_key", "fingerprint"]);
    assert.ok(!server.log.join("").includes(PASSPHRASE));
  });

  it("shows a refused input at its field, keeps plain values, never echoes a secret", async () => {
    await using server = await start(
      "enrolments: {a: {engine: prompt, fields: [{name: user, secret: false}, {name: token, pattern: '[a-z]+'}]}}",
    );
    await act(server, "prompt/a", "start");
    const { status, body } = await act(server, "prompt/a", "answer", {
      "field.0": "ada",
      "field.1": "HUNTER2",
    });
    assert.equal(status, 422);
    assert.match(body, /token does not have the form that is asked for/);
    assert.match(body, /value="ada"/);
    assert.ok(!body.includes("HUNTER2") && !server.log.join("").includes("HUNTER2"));
    assert.equal(server.enrolments.list()[0]?.state, "running");
    const taken = await act(server, "prompt/a", "answer", { "field.0": "ada", "field.1": "hunter" });
    assert.equal(taken.status, 303);
    assert.equal(server.enrolments.list()[0]?.state, "complete");
  });

  it("a refused answer says which passwords must be typed again", async () => {
    await using server = await start(
      "enrolments: {a: {engine: prompt, fields: [{name: user, secret: false, pattern: '[a-z]+'}, {name: token}]}}",
    );
    await act(server, "prompt/a", "start");
    const { body } = await act(server, "prompt/a", "answer", { "field.0": "ADA", "field.1": "planted" });
    assert.equal(body.match(/Type it again/g)?.length, 1);
    assert.match(body, /value="ADA"/);
    assert.ok(!body.includes("planted"));
  });

  it("a passphrase typed twice differently is refused", async () => {
    await using server = await start(SSH);
    await act(server, "ssh/work/key", "start");
    const answer = await act(server, "ssh/work/key", "answer", { "field.0": PASSPHRASE, "again.0": "other" });
    assert.equal(answer.status, 422);
    assert.match(answer.body, /the two are not the same/);
    assert.ok(!answer.body.includes(PASSPHRASE));
  });

  it("shows the code and the link of a device flow, and continues by itself", async () => {
    const oauth = new TestOauthServer();
    await oauth.start();
    try {
      await using server = await start(
        `enrolments: {hub: {engine: github, host: "${oauth.url}", client_id: x}}`,
      );
      await act(server, "github/hub", "start");
      const { body } = await server.send("/ui/enrolments/github/hub/");
      assert.match(body, /ABCD-1234/);
      assert.match(
        body,
        /<a\s+class="button primary"\s+href="http:[^"]+\/login\/device"\s+rel="noreferrer"\s+target="_blank"/,
      );
      assert.match(body, REFRESH);
      assert.equal((await act(server, "github/hub", "cancel")).status, 303);
      assert.equal(server.enrolments.list()[0]?.state, "pending");
    } finally {
      oauth.stop();
    }
  });

  it("retries or skips a failed one, starts a skipped one, and replaces a complete one [agent 26.8]", async () => {
    await using server = await start("enrolments: {a: {engine: ssh, passphrase: recommended}}");
    const page = async (): Promise<string> => (await server.send("/ui/enrolments/ssh/a/")).body;
    await act(server, "ssh/a", "skip");
    assert.match(await page(), /Start after all/);
    await enrolWithoutPassphrase(server, "ssh/a");
    assert.match(await page(), /Replace the credential/);
    const { version } = await server.store.read("a");
    await enrolWithoutPassphrase(server, "ssh/a");
    assert.equal((await server.store.read("a")).version, version + 1);
    await using failing = await start(
      "enrolments: {a: {engine: github, host: 'http://127.0.0.1:1', client_id: x}}",
    );
    await act(failing, "github/a", "start");
    assert.match((await failing.send("/ui/enrolments/github/a/")).body, /Try again[^]*Skip/);
  });

  it("409 for an action in the wrong state, 422 if unknown, 404 without enrolment", async () => {
    await using server = await start(SSH);
    const early = await act(server, "ssh/work/key", "answer");
    assert.equal(early.status, 409);
    assert.match(early.body, /asks for nothing now/);
    await act(server, "ssh/work/key", "start");
    assert.equal((await act(server, "ssh/work/key", "skip")).status, 409);
    assert.equal((await act(server, "ssh/work/key", "start")).status, 409);
    assert.equal((await act(server, "ssh/work/key", "other")).status, 422);
    assert.equal((await act(server, "ssh/other", "start")).status, 404);
    assert.equal((await act(server, "copy/work/key", "start")).status, 404, "another engine's");
    assert.equal((await server.send("/ui/enrolments/ssh/other/")).status, 404);
  });

  it("a form of another page is refused", async () => {
    await using server = await start(SSH);
    for (const headers of [{}, { Origin: "null" }, { Origin: "https://evil.example.test" }]) {
      const path = "/ui/enrolments/ssh/work/key/";
      assert.equal(
        (await post(server, path, { action: "start" }, headers as Record<string, string>)).status,
        403,
      );
    }
    assert.equal(server.enrolments.list()[0]?.state, "pending");
  });

  it("shows markup in names, descriptions, errors and addresses as text, without links", async () => {
    const markup = `<img src=x onerror=alert(1)>`;
    await using server = await start(
      `enrolments: {'g/${markup}': {engine: prompt, description: '${markup}', fields: [{name: '${markup}', help: '${markup}'}]}}`,
    );
    const path = `/ui/enrolments/prompt/g/${encodeURIComponent(markup)}/`;
    await post(server, path, { action: "start" });
    for (const page of [path, "/setup/", "/ui/enrolments/", "/ui/"]) {
      const { body, status } = await server.send(page);
      assert.equal(status, 200);
      assert.ok(!body.includes("<img src=x"), page);
    }
    const { enrolmentCard } = await import("../pages/enrolments/card.ts");
    const enrolment = { ...server.enrolments.list()[0]!, error: markup };
    const prompt = { visit: { url: "javascript:alert(1)", code: markup } };
    const card = String(await enrolmentCard({ enrolment, prompt }, "page"));
    assert.ok(!card.includes("<img src=x") && !card.includes('href="javascript'));
  });
});
