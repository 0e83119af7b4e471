import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { git, until } from "@devplat/testkit";
import { ForwardClock } from "./forward-clock.ts";
import { MAIN, assertProblem, ensure, post } from "./svc-ensure-stand.ts";
import { PROXY_TOKEN, basic, command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const GRANT_SECONDS = 5;

describe("access check of POST svc/ensure", { timeout: 300_000 }, () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand({ grantSeconds: 30 });
  });
  after(() => stand.stop());

  describe("a caller that the code host refuses learns nothing of the cache", () => {
    /** Everything of a response that may not differ. */
    const visible = ({ status, headers, text }: Answer): unknown => {
      const { date, "x-request-id": id, "server-timing": timing, ...rest } = headers;
      assert.ok(date !== undefined && id !== undefined && timing !== undefined);
      return { status, headers: rest, text };
    };
    let filled = "";
    let secret = "";
    before(async () => {
      filled = "secret-filled";
      stand.codeHost.addUser("owner", "owner-token");
      stand.codeHost.addUser("outsider", "outsider-token", { repositories: ["org/elsewhere"] });
      for (const each of [filled, "secret-unlisted", "secret-disabled"]) {
        const { path: folder } = await stand.codeHost.addRepository("org", each, { private: true });
        if (each === filled) secret = await git(["-C", folder, "rev-parse", MAIN]);
      }
      stand.list("org", filled);
      stand.list("org", "secret-disabled", { enabled: false });
      const headers = { Authorization: basic("owner-token") };
      assert.equal((await ensure(stand, `org/${filled}`, { [MAIN]: secret }, { headers })).status, 200);
    });

    for (const [title, headers, status] of [
      ["anonymous", {}, 401],
      ["another repository's token", { Authorization: basic("outsider-token") }, 404],
      ["an unknown credential", { Authorization: basic("made-up") }, 401],
    ] as const) {
      it(`${title}: the code host's ${status} in every case`, async () => {
        const answers: Answer[] = [];
        for (const each of [filled, "secret-disabled", "secret-unlisted", "secret-missing"]) {
          answers.push(await ensure(stand, `org/${each}`, { [MAIN]: secret }, { headers }));
        }
        const [first] = answers;
        assert.equal(first?.status, status);
        for (const answer of answers) assert.deepEqual(visible(answer), visible(first));
        if (status === 401) assert.match(String(first.headers["www-authenticate"]), /^Basic/);
      });
    }

    it("a revoked credential, also while an authorization is remembered", async () => {
      stand.codeHost.addUser("leaver", "leaver-token");
      const headers = { Authorization: basic("leaver-token") };
      const url = `${stand.url}/org/${filled}`.replace("//", "//user:leaver-token@");
      assert.equal((await stand.git(["ls-remote", url])).code, 0);
      assert.equal((await ensure(stand, `org/${filled}`, { [MAIN]: secret }, { headers })).status, 200);
      stand.codeHost.revoke("leaver-token");
      assert.equal((await ensure(stand, `org/${filled}`, { [MAIN]: secret }, { headers })).status, 401);
      const fetched = await stand.post(
        `org/${filled}`,
        command("fetch", [`want ${secret}`, "done"]),
        headers,
      );
      assert.equal(fetched.status, 401);
    });

    it("with access, an unlisted and a disabled repository are 404 problems", async () => {
      const headers = { Authorization: basic("owner-token") };
      for (const each of ["secret-unlisted", "secret-disabled"]) {
        const { path: folder } = { path: `${stand.codeHost.url}/org/${each}` };
        const url = folder.replace("//", "//user:owner-token@");
        const [oid = ""] = (await git(["ls-remote", url, MAIN])).split("\t");
        assertProblem(await ensure(stand, `org/${each}`, { [MAIN]: oid }, { headers }), 404, "not_found");
      }
    });

    it("a token of this service needs contents:read; the body is not read before", async () => {
      stand.actions.length = 0;
      const headers = { Authorization: basic("svcx_another") };
      assertProblem(await post(stand, `org/${filled}`, "{", headers), 401, "unauthorized");
      assert.deepEqual(stand.actions, [{ owner: "org", name: filled, resource: "contents", level: "read" }]);
    });
  });

  it("renews the credential behind a proxy token after a 401", async () => {
    const renewing = await startStand({ listed: ["r"], renewed: basic("fresh-token") });
    try {
      const { path: folder } = await renewing.codeHost.addRepository("org", "r", { private: true });
      renewing.codeHost.addUser("alice", "fresh-token");
      const oid = await git(["-C", folder, "rev-parse", MAIN]);
      const headers = { Authorization: basic(PROXY_TOKEN) };
      const answer = await ensure(renewing, "org/r", { [MAIN]: oid }, { headers });
      assert.equal(answer.status, 200, answer.text);
    } finally {
      await renewing.stop();
    }
  });

  it("asks the code host again after a wait that is longer than grant_seconds", async () => {
    const clock = new ForwardClock();
    const strict = await startStand({ listed: ["r"], clock, grantSeconds: GRANT_SECONDS });
    try {
      const { path: folder } = await strict.codeHost.addRepository("org", "r", { private: true });
      strict.codeHost.addUser("ada", "ada-token");
      const oid = await git(["-C", folder, "rev-parse", MAIN]);
      const go = Promise.withResolvers<void>();
      strict.codeHost.inject({ command: "fetch" }, { until: go.promise });
      const headers = { Authorization: basic("ada-token") };
      const waiting = ensure(strict, "org/r", { [MAIN]: oid }, { headers });
      await until(() => strict.upstream("fetch") === 1);
      // The fetch was admitted by the code host. The caller loses its access during the wait.
      strict.codeHost.inject({ command: "ls-refs" }, { status: 403, body: "access was withdrawn" });
      clock.advance(GRANT_SECONDS * 1000);
      go.resolve();
      const answer = await waiting;
      assert.equal(answer.status, 403, answer.text);
      assert.equal(answer.text, "access was withdrawn");
    } finally {
      await strict.stop();
    }
  });
});
