import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { requestOpenLink } from "../../socket/open-link.ts";
import { PortGuard } from "./port-guard.ts";
import { systemSocketOwners, type SocketOwners } from "./socket-owners.ts";
import { startTestServer } from "../server.test-kit.ts";
import { assertProtected, code } from "../responses.test-kit.ts";

describe("web.require_unlock", () => {
  it("true: asks for a session or the key everywhere but on the open paths [agent 32.13]", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    assert.match((await server.send("/")).body, /agent open/);
    const site = await server.send("/ui/");
    assert.deepEqual([site.status, site.headers.location], [303, "/"]);
    for (const path of ["/api/v1/status", "/api/v1/csrf", "/api/v1/events", "/metrics"]) {
      const response = await server.send(path);
      assert.equal(response.status, 401);
      assert.equal(code(response), "unlock_required");
      assertProtected(response);
    }
    assert.equal((await server.send("/ui/sse")).status, 401);
    assert.equal(
      (await server.send("/ui/sync", { method: "POST", headers: { Origin: server.url } })).status,
      401,
    );
    assert.equal((await server.send("/healthz")).status, 200);
    assert.equal((await server.send("/readyz")).status, 200);
  });

  it("true: the link of 'agent open' admits one browser; a second use ends its session", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const link = new URL(await requestOpenLink(server.runtimeFolder));
    const opened = await server.send(link.pathname + link.search);
    assert.equal(opened.status, 200);
    const setCookie = String(opened.headers["set-cookie"]);
    assert.match(setCookie, /; HttpOnly; SameSite=Strict$/);
    const cookie = { Cookie: setCookie.split(";")[0] ?? "" };
    assert.equal((await server.send("/ui/", { headers: cookie })).status, 200);
    assert.equal((await server.send("/api/v1/status", { headers: cookie })).status, 200);

    const stream = await server.open("/ui/sse", cookie);
    const ended = once(stream.resume(), "end");
    const again = await server.send(link.pathname + link.search);
    assert.equal(again.status, 403);
    assert.match(again.body, /used before/);
    await ended;
    assert.equal((await server.send("/api/v1/status", { headers: cookie })).status, 401);
    assert.deepEqual(server.warnings, [
      "a link of 'agent open' was used twice; the session that it opened has been ended",
    ]);
  });

  it("true: a HEAD request for the link does not use it [agent 32.15]", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const link = new URL(await requestOpenLink(server.runtimeFolder));
    const head = await server.send(link.pathname + link.search, { method: "HEAD" });
    assert.deepEqual([head.status, head.headers["set-cookie"]], [200, undefined]);
    assertProtected(head);
    const opened = await server.send(link.pathname + link.search);
    assert.equal(opened.status, 200);
    const cookie = String(opened.headers["set-cookie"]).split(";")[0] ?? "";
    assert.equal((await server.send("/api/v1/status", { headers: { Cookie: cookie } })).status, 200);
  });

  it("true: a wrong key or cookie does not open", async () => {
    await using server = await startTestServer({ requireUnlock: true });
    const port = new URL(server.url).port;
    for (const headers of [{ Authorization: "Bearer x" }, { Cookie: `daemon_session_${port}=x` }]) {
      assert.equal((await server.send("/api/v1/status", { headers })).status, 401);
    }
  });

  it("auto: asks for it if the owner of a connection is unknown, else checks the owner [agent 32.13]", async () => {
    const blind = new PortGuard({ uid: undefined, read: () => Promise.reject(new Error("none")) });
    await using locked = await startTestServer({ guard: blind });
    assert.equal((await locked.send("/api/v1/status")).status, 401);
    await locked.stop();
    await using open = await startTestServer();
    assert.equal((await open.send("/api/v1/status")).status, 200);
  });

  it("false: asks for nothing and warns where the owner cannot be read [agent 32.13]", async () => {
    const blind = new PortGuard({ uid: undefined, read: () => Promise.reject(new Error("none")) });
    await using server = await startTestServer({ guard: blind, requireUnlock: false });
    assert.equal((await server.send("/api/v1/status")).status, 200);
    assert.match(server.warnings.join(), /every user of this host/);
  });

  it("refuses another user with every setting, but answers the probes", async () => {
    let foreign = false;
    const read: SocketOwners["read"] = async (table, localPort) =>
      (await systemSocketOwners.read(table, localPort)).map((record) =>
        foreign ? { ...record, uid: record.uid + 1 } : record,
      );
    for (const requireUnlock of ["auto", true, false] as const) {
      foreign = false;
      const guard = new PortGuard({ uid: systemSocketOwners.uid, read });
      await using server = await startTestServer({ guard, requireUnlock });
      foreign = true;
      const response = await server.send("/api/v1/status");
      assert.equal(response.status, 403);
      assert.equal(code(response), "other_user");
      assertProtected(response);
      const page = await server.send("/ui/");
      assert.equal(page.status, 403);
      assert.match(page.body, /does not come from the user that runs this daemon/);
      assert.equal((await server.send("/static/kit.css")).status, 403);
      assert.equal((await server.send("/healthz")).status, 200);
      assert.equal((await server.send("/readyz")).status, 200);
    }
  });
});
