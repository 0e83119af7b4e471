import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { request as startRequest } from "node:http";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { systemClock, type Clock } from "@devplat/base";
import { startCodeHost, type CodeHost, type TestApp } from "@devplat/testkit";
import { startAdministration, type TestAdministration } from "../../assemble/administration.test-kit.ts";

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

describe("apps and webhooks over HTTP", () => {
  let host: CodeHost;
  let app: TestApp;
  let svc: TestAdministration;
  let admin: string;
  let user: string;
  let warmed: string[];

  before(async () => {
    host = await startCodeHost();
    await host.addRepository("acme", "app", { private: true });
    app = host.apps.addApp("builder", { contents: "write", metadata: "read" });
    host.apps.install(app, "acme", ["app"]);
  });
  after(async () => host.stop());
  beforeEach(async () => {
    warmed = [];
    svc = await startAdministration({
      host: { url: host.url, api_url: host.apiUrl, webhook_secret: "planted-hook-secret" },
      warm: (name) => {
        warmed.push(name);
        return "started";
      },
    });
    admin = await svc.session("root", "admin");
    user = await svc.session("alice", "user");
  });
  afterEach(async () => {
    host.clearFaults();
    await svc.stop();
  });

  const send = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    token = admin,
  ): Promise<Answer> => {
    const response = await fetch(svc.url + path, {
      method,
      redirect: "manual",
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = (response.headers.get("content-type") ?? "").includes("json");
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: (isJson ? JSON.parse(text) : {}) as Answer["json"],
    };
  };
  const register = async (): Promise<string> => {
    const response = await send("POST", "/api/apps", { app_id: String(app.id), private_key: app.privateKey });
    assert.equal(response.status, 201, response.text);
    return String(response.json["id"]);
  };

  it("POST, GET, PATCH, DELETE /api/apps and POST check [svc 6.16]", async () => {
    const id = await register();
    const shown = await send("GET", `/api/apps/${id}`);
    assert.deepEqual(
      [
        shown.json["slug"],
        shown.json["is_default"],
        shown.json["has_webhook_secret"],
        shown.headers.get("etag"),
      ],
      ["builder", true, false, '"1"'],
    );
    const checked = await send("POST", `/api/apps/${id}/check`);
    assert.deepEqual(checked.json["permissions"], { contents: "write", metadata: "read" });
    const path = `/api/apps/${id}`;
    assert.equal((await send("PATCH", path, { webhook_secret: "x" }, { "if-match": '"9"' })).status, 412);
    const changed = await send("PATCH", path, { webhook_secret: "x" }, { "if-match": '"1"' });
    assert.deepEqual([changed.json["has_webhook_secret"], changed.headers.get("etag")], [true, '"2"']);
    assert.equal((await send("PATCH", path, { webhook_secret: null })).json["has_webhook_secret"], false);
    assert.equal((await send("DELETE", path, undefined, { "if-match": '"1"' })).status, 412);
    assert.equal((await send("DELETE", path)).status, 204);
    assert.equal((await send("GET", path)).status, 404);
    assert.deepEqual((await send("GET", "/api/apps")).json, []);
    const actions = (await svc.audited())
      .map(({ action }) => action)
      .filter((each) => each.startsWith("app."));
    assert.deepEqual(actions, ["app.deleted", "app.updated", "app.updated", "app.created"]);
  });

  it("are for admins", async () => {
    const id = await register();
    for (const [method, path] of [
      ["GET", "/api/apps"],
      ["POST", "/api/apps"],
      ["GET", `/api/apps/${id}`],
      ["PATCH", `/api/apps/${id}`],
      ["DELETE", `/api/apps/${id}`],
      ["POST", `/api/apps/${id}/check`],
      ["GET", "/admin/apps"],
    ] as const) {
      const body = ["POST", "PATCH"].includes(method) ? {} : undefined;
      assert.equal((await send(method, path, body, {}, user)).status, 403, `${method} ${path}`);
    }
  });

  const bad: [name: string, body: unknown, status: number, pointer: string][] = [
    ["nothing", {}, 422, "/app_id"],
    ["an id that is no number", { app_id: "1; drop table apps", private_key: "x" }, 422, "/app_id"],
    ["a number as id", { app_id: 5, private_key: "x" }, 422, "/app_id"],
    ["a key that is none", { app_id: "5", private_key: "planted" }, 422, "/private_key"],
    ["a huge key", { app_id: "5", private_key: "x".repeat(20_000) }, 422, "/private_key"],
    ["an unknown field", { app_id: "5", private_key: "x", slug: "y" }, 400, "/slug"],
    ["a wrong default", { app_id: "5", private_key: "x", is_default: "yes" }, 422, "/is_default"],
  ];
  for (const [name, body, status, pointer] of bad) {
    it(`bad input: ${name}`, async () => {
      const response = await send("POST", "/api/apps", body);
      assert.equal(response.status, status, response.text);
      const errors = response.json["errors"] as { pointer: string }[];
      assert.ok(
        errors.some((each) => each.pointer === pointer),
        response.text,
      );
      assert.doesNotMatch(response.text + svc.log(), /planted|drop table/);
    });
  }

  it("an agent token needs an app's installation; the refusal names what is missing", async () => {
    const request = { repository: "acme/app", scopes: "contents:read", duration: "1h", type: "agent" };
    assert.equal((await send("POST", "/api/tokens", request)).status, 409);
    await register();
    const minted = await send("POST", "/api/tokens", request);
    assert.equal(minted.status, 201, minted.text);
    assert.match(String(minted.json["token"]), /^svca_/);
    const issued = host.apps.issued.at(-1)?.token ?? "";
    const refused = await send("POST", "/api/tokens", { ...request, scopes: "issues:write" });
    assert.equal(refused.status, 422);
    assert.match(refused.text, /lacks issues:write/);
    assert.equal((await send("DELETE", `/api/tokens/${String(minted.json["id"])}`)).status, 204);
    assert.equal(host.apps.revoked.has(issued), true);
  });

  it("no key and no installation token is in answers, log, audit or pages", async () => {
    const id = await register();
    await send("POST", "/api/tokens", {
      repository: "acme/app",
      scopes: "contents:read",
      duration: "1h",
      type: "agent",
    });
    const texts = [
      (await send("GET", `/api/apps/${id}`)).text,
      (await send("POST", `/api/apps/${id}/check`)).text,
      (await send("GET", "/admin/apps")).text,
      JSON.stringify(await svc.audited()),
      svc.log(),
    ].join("\n");
    assert.doesNotMatch(texts, /PRIVATE KEY-----\\?n|MII|ghs_planted|planted-hook/);
  });

  describe("the manifest flow", () => {
    const page = async (path: string, form?: Record<string, string>, token = admin): Promise<Response> =>
      fetch(svc.url + path, {
        method: form === undefined ? "GET" : "POST",
        redirect: "manual",
        headers: { cookie: `svc_session=${token}`, ...(form === undefined ? {} : { origin: svc.url }) },
        ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      });
    /** The form's address and content, out of the page. */
    const begin = async (): Promise<{ action: string; manifest: string; policy: string }> => {
      const response = await page("/admin/apps/manifest", { name: "acme svc", owner: "acme" });
      const text = await response.text();
      const unescaped = (part: string | undefined): string =>
        (part ?? "").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
      return {
        action: unescaped(/method="post" action="(http[^"]*)"/.exec(text)?.[1]),
        manifest: unescaped(/name="manifest" value="([^"]*)"/.exec(text)?.[1]),
        policy: response.headers.get("content-security-policy") ?? "",
      };
    };
    const confirm = async ({ action, manifest }: { action: string; manifest: string }): Promise<URL> => {
      const response = await fetch(action, {
        method: "POST",
        redirect: "manual",
        body: new URLSearchParams({ manifest }),
      });
      return new URL(response.headers.get("location") ?? "");
    };

    it("creates an app at the code host and registers it", async () => {
      const begun = await begin();
      assert.match(begun.action, new RegExp(`^${host.url}/organizations/acme/settings/apps/new\\?state=`));
      assert.equal(begun.policy.includes(`form-action 'self' ${host.url};`), true);
      const back = await confirm(begun);
      const done = await page(back.pathname + back.search);
      assert.equal(done.headers.get("location"), "/admin/apps?done=created#done");
      const [made] = (await send("GET", "/api/apps")).json as unknown as Record<string, unknown>[];
      assert.deepEqual([made?.["source"], made?.["has_webhook_secret"]], ["manifest", true]);
      assert.equal((await page(back.pathname + back.search)).status, 422);
    });

    it("a code that another session began, a wrong state and no code are refused", async () => {
      const other = await svc.session("other", "admin");
      const back = await confirm(await begin());
      assert.equal((await page(back.pathname + back.search, undefined, other)).status, 422);
      assert.equal((await page(`${back.pathname}?code=x&state=wrong`)).status, 422);
      assert.equal((await page(back.pathname)).status, 422);
      assert.deepEqual((await send("GET", "/api/apps")).json, []);
    });

    it("names that the code host would not take are refused here", async () => {
      const response = await page("/admin/apps/manifest", { name: "", owner: "a/b" });
      assert.equal(response.status, 422);
    });
  });

  describe("POST /hooks/push", () => {
    const deliver = async (
      body: string,
      options: { secret?: string; headers?: Record<string, string>; event?: string } = {},
    ): Promise<Answer> => {
      const signature = createHmac("sha256", options.secret ?? "planted-hook-secret")
        .update(body)
        .digest("hex");
      const response = await fetch(`${svc.url}/hooks/push`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-github-event": options.event ?? "push",
          "x-hub-signature-256": `sha256=${signature}`,
          ...options.headers,
        },
        body,
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        text,
        json: JSON.parse(text) as Answer["json"],
      };
    };
    const push = (name: string): string =>
      JSON.stringify({ ref: "refs/heads/main", repository: { full_name: name } });

    it("a push warms the repository immediately [svc 6.16]", async () => {
      const response = await deliver(push("acme/app"));
      assert.deepEqual([response.status, response.json["status"], warmed], [202, "started", ["acme/app"]]);
      assert.equal((await svc.audited())[0]?.action, "webhook.received");
    });

    it("Gitea's header is read too", async () => {
      const body = push("acme/app");
      const signature = createHmac("sha256", "planted-hook-secret").update(body).digest("hex");
      const response = await fetch(`${svc.url}/hooks/push`, {
        method: "POST",
        headers: { "x-gitea-event": "push", "x-gitea-signature": signature },
        body,
      });
      assert.equal(response.status, 202);
      assert.deepEqual(warmed, ["acme/app"]);
    });

    it("an app's own secret counts as well", async () => {
      const id = await register();
      await send("PATCH", `/api/apps/${id}`, { webhook_secret: "of-the-app" });
      assert.equal((await deliver(push("acme/app"), { secret: "of-the-app" })).status, 202);
    });

    it("a replayed delivery does nothing, with any id", async () => {
      await deliver(push("acme/app"), { headers: { "x-github-delivery": "1" } });
      const again = await deliver(push("acme/app"), { headers: { "x-github-delivery": "2" } });
      assert.deepEqual([again.status, again.json["status"], warmed.length], [202, "seen", 1]);
    });

    it("other events, and bodies that name no repository, are taken and ignored", async () => {
      for (const [body, event] of [
        [push("acme/app"), "ping"],
        ["{}", "push"],
        ["not json", "push"],
        ["", "push"],
        [JSON.stringify({ repository: { full_name: "../../etc" } }), "push"],
        [JSON.stringify({ repository: { full_name: 5 } }), "push"],
        [JSON.stringify({ repository: null }), "push"],
      ] as const) {
        const response = await deliver(body, { event });
        assert.deepEqual([response.status, response.json["status"]], [202, "ignored"], body);
      }
      assert.deepEqual(warmed, []);
    });

    const unsigned: [name: string, headers: Record<string, string>][] = [
      ["another secret's signature", { "x-hub-signature-256": `sha256=${"0".repeat(64)}` }],
      ["no signature", { "x-hub-signature-256": "" }],
      ["SHA-1", { "x-hub-signature-256": `sha1=${"0".repeat(40)}` }],
      ["a short one", { "x-hub-signature-256": "sha256=00" }],
      ["not hexadecimal", { "x-hub-signature-256": `sha256=${"z".repeat(64)}` }],
    ];
    for (const [name, headers] of unsigned) {
      it(`refused: ${name}`, async () => {
        const response = await deliver(push("acme/app"), { headers });
        assert.equal(response.status, 401);
        assert.deepEqual(warmed, []);
        assert.equal((await svc.audited())[0]?.outcome, "denied");
      });
    }

    it("a changed body is refused, one over 8 MiB is 413, another method is 405", async () => {
      const signature = createHmac("sha256", "planted-hook-secret").update(push("acme/app")).digest("hex");
      const headers = { "x-hub-signature-256": `sha256=${signature}` };
      assert.equal((await deliver(push("acme/evil"), { headers })).status, 401);
      assert.equal((await deliver("x".repeat(8 * 1024 * 1024 + 1))).status, 413);
      assert.equal((await send("GET", "/hooks/push")).status, 405);
    });

    /** A delivery whose body never ends: its status, once there is one. */
    const stuck = async (signature: string | undefined, at = svc.url): Promise<number> =>
      new Promise((resolve, reject) => {
        const sent = startRequest(`${at}/hooks/push`, {
          method: "POST",
          headers: {
            "content-length": "1000",
            ...(signature === undefined ? {} : { "x-hub-signature-256": signature }),
          },
        });
        sent.on("error", reject);
        sent.on("response", (response) => {
          resolve(response.statusCode ?? 0);
          sent.destroy();
        });
        sent.write("{");
      });

    it("a body that nothing could have signed is not waited for", async () => {
      assert.deepEqual(await Promise.all([stuck(undefined), stuck("sha256=00")]), [401, 401]);
    });

    it("eight slow strangers do not keep a delivery out", async () => {
      let ahead = 0;
      const clock: Clock = {
        ...systemClock,
        now: () => systemClock.now(),
        monotonic: () => systemClock.monotonic() + ahead,
      };
      const slow = await startAdministration({
        clock,
        host: { url: host.url, api_url: host.apiUrl, webhook_secret: "planted-hook-secret" },
        warm: () => "started",
      });
      const forged = `sha256=${"0".repeat(64)}`;
      const responses = Array.from({ length: 8 }, async () => stuck(forged, slow.url));
      responses.push(stuck(forged, slow.url));
      // The ninth says that all places are taken.
      assert.equal(await Promise.race(responses), 503);
      ahead = 1000;
      const body = push("acme/app");
      const signature = createHmac("sha256", "planted-hook-secret").update(body).digest("hex");
      const response = await fetch(`${slow.url}/hooks/push`, {
        method: "POST",
        headers: { "x-github-event": "push", "x-hub-signature-256": `sha256=${signature}` },
        body,
      });
      assert.equal(response.status, 202);
      await slow.stop();
      const ended = await Promise.allSettled(responses);
      assert.equal(ended.filter((each) => each.status === "fulfilled" && each.value === 408).length, 1);
    });

    it("without any secret there is nothing", async () => {
      const bare = await startAdministration();
      const response = await fetch(`${bare.url}/hooks/push`, { method: "POST", body: "{}" });
      assert.equal(response.status, 404);
      await bare.stop();
    });
  });
});
