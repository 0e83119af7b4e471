import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { z } from "zod";
import { startAdministration, type TestAdministration } from "../assemble/administration.test-kit.ts";
import { figuresText } from "../administration/instances/instance-figures.ts";
import type { WarmStart } from "../cache/policy.ts";
import { pointers, startApiClient, type ApiClient, type ApiResponse } from "./api-client.test-kit.ts";
import { repositorySchema } from "./cached-repos.ts";

let administration: TestAdministration;
let send: ApiClient["send"];
let listed: ApiClient["listed"];
before(async () => {
  ({ administration, send, listed } = await startApiClient({
    reach: (name) => (name === "hidden" ? "refused" : name === "old" ? "moved" : "readable"),
  }));
});
after(async () => administration.stop());

describe("POST /api/cached-repos", () => {
  it("gives 201 with Location, ETag and the record with its defaults [svc 6.1 11.1]", async () => {
    const response = await send("/api/cached-repos", { body: { owner: "acme", name: "first" } });
    assert.equal(response.status, 201);
    const record = repositorySchema.parse(response.json);
    assert.match(record.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    assert.deepEqual([record.enabled, record.timeout_seconds, record.max_cache_size_mb], [true, 30, null]);
    assert.match(
      response.headers.get("location") ?? "",
      new RegExp(`^http.*/api/cached-repos/${record.id}$`),
    );
    assert.equal(response.headers.get("etag"), '"1"');
    assert.equal(administration.repositories.find("ACME", "First")?.id, record.id);
  });

  it("takes every optional field, and null as not given [svc 6.1]", async () => {
    const record = await listed({ enabled: false, timeout_seconds: 3600, max_cache_size_mb: 1 });
    assert.deepEqual(
      [record["enabled"], record["timeout_seconds"], record["max_cache_size_mb"]],
      [false, 3600, 1],
    );
    const plain = await listed({ timeout_seconds: null, max_cache_size_mb: null });
    assert.deepEqual([plain["timeout_seconds"], plain["max_cache_size_mb"]], [30, null]);
  });

  it("is 409 for a repository that is listed, in any case of letters [svc 6.1]", async () => {
    await listed({ name: "Twice" });
    const response = await send("/api/cached-repos", { body: { owner: "ACME", name: "twice" } });
    assert.equal(response.status, 409);
    assert.equal(response.json["message"], "ACME/twice is listed already");
  });

  it("?check=true asks the code host", async () => {
    const ask = async (name: string): Promise<number> =>
      (await send("/api/cached-repos?check=true", { body: { owner: "acme", name } })).status;
    assert.equal(await ask("hidden"), 422);
    assert.equal(await ask("old"), 422);
    assert.equal(await ask("there"), 201);
  });

  const wrong: [name: string, body: unknown, status: number, where: string[]][] = [
    ["no fields", {}, 422, ["/owner", "/name"]],
    ["an empty owner", { owner: "", name: "a" }, 422, ["/owner"]],
    ["a number as owner", { owner: 5, name: "a" }, 422, ["/owner"]],
    ["a slash", { owner: "a/b", name: "c" }, 422, ["/owner"]],
    ["dots", { owner: "..", name: "." }, 422, ["/owner", "/name"]],
    ["an owner of the cache's own", { owner: "_responses", name: "a" }, 422, ["/owner"]],
    ["a .git ending", { owner: "a", name: "b.git" }, 422, ["/name"]],
    ["control characters", { owner: "a\u0000", name: "b\n" }, 422, ["/owner", "/name"]],
    ["a long name", { owner: "a", name: "x".repeat(101) }, 422, ["/name"]],
    ["timeout 0", { owner: "a", name: "b", timeout_seconds: 0 }, 422, ["/timeout_seconds"]],
    ["timeout 3601", { owner: "a", name: "b", timeout_seconds: 3601 }, 422, ["/timeout_seconds"]],
    ["timeout 1.5", { owner: "a", name: "b", timeout_seconds: 1.5 }, 422, ["/timeout_seconds"]],
    ["timeout as text", { owner: "a", name: "b", timeout_seconds: "30" }, 422, ["/timeout_seconds"]],
    ["limit 0", { owner: "a", name: "b", max_cache_size_mb: 0 }, 422, ["/max_cache_size_mb"]],
    ["limit too large", { owner: "a", name: "b", max_cache_size_mb: 1_048_577 }, 422, ["/max_cache_size_mb"]],
    ["limit negative", { owner: "a", name: "b", max_cache_size_mb: -1 }, 422, ["/max_cache_size_mb"]],
    ["enabled as text", { owner: "a", name: "b", enabled: "yes" }, 422, ["/enabled"]],
    ["an unknown field", { owner: "a", name: "b", size: 1 }, 400, ["/size"]],
    ["an id of the caller's", { owner: "a", name: "b", id: "x" }, 400, ["/id"]],
    ["a list", [], 400, []],
    ["a text", "x", 400, []],
    ["null", null, 400, []],
  ];
  for (const [name, body, status, where] of wrong) {
    it(`refuses ${name}`, async () => {
      const response = await send("/api/cached-repos", { body });
      assert.equal(response.status, status, response.text);
      assert.equal(response.headers.get("content-type"), "application/problem+json");
      assert.equal(response.json["message"], response.json["detail"]);
      assert.deepEqual(pointers(response), where);
    });
  }

  it("names an unknown field [svc 10.8]", async () => {
    const response = await send("/api/cached-repos", { body: { owner: "a", name: "b", enabeld: true } });
    assert.equal(response.json["message"], 'Unknown field: "enabeld"');
  });
});

describe("GET /api/cached-repos", () => {
  it("is a bare array ordered by owner and name [svc 6.2]", async () => {
    await listed({ owner: "Zed", name: "a" });
    await listed({ owner: "abc", name: "a" });
    const response = await send("/api/cached-repos");
    const records = z.array(repositorySchema).parse(response.json);
    const keys = records.map(({ owner, name }) => `${owner}/${name}`.toLowerCase());
    assert.deepEqual(keys, keys.toSorted());
    assert.equal(response.headers.get("link"), null);
  });

  it("pages with limit and Link, over everything once", async () => {
    const all = ((await send("/api/cached-repos")).json as unknown as { id: string }[]).map(({ id }) => id);
    const seen: string[] = [];
    let path: string | undefined = "/api/cached-repos?limit=4";
    while (path !== undefined) {
      const response: ApiResponse = await send(path);
      const page = response.json as unknown as { id: string }[];
      assert.ok(page.length <= 4);
      seen.push(...page.map(({ id }) => id));
      const next = /<https?:\/\/[^/]+([^>]+)>; rel="next"/.exec(response.headers.get("link") ?? "");
      path = next?.[1];
    }
    assert.deepEqual(seen, all);
  });

  it("refuses a cursor that no page gave [svc 10.9]", async () => {
    const cursors = ["A".repeat(5000), "Y".repeat(5000), Buffer.from("a b").toString("base64url"), ""];
    for (const cursor of cursors) {
      for (const path of ["cached-repos", "sessions", "admin-tokens", "tokens", "audit"]) {
        const response = await send(`/api/${path}?limit=1&cursor=${cursor}`);
        assert.equal(response.status, 400, `${path} ${cursor.slice(0, 20)}`);
        assert.match(String(response.json["detail"]), /"cursor": must be from the Link header/);
      }
      const page = await send(`/admin/tokens?cursor=${cursor}`);
      assert.equal(page.status, 400);
    }
  });

  it("refuses parameters that are wrong, unknown or repeated", async () => {
    const repeated = ["limit=1&limit=2", "limit=1&limit=1"];
    for (const query of ["limit=0", "limit=1001", "limit=x", "cursor=%2e%2e", "color=red", ...repeated]) {
      assert.equal((await send(`/api/cached-repos?${query}`)).status, 400, query);
    }
  });
});

describe("figures of other instances", () => {
  it("are in the response to POST as they were read last, for any page", async () => {
    const reported = {
      hostName: "host",
      version: "1.0.0",
      ready: true,
      uptimeMs: 0,
      reportAgeMs: 0,
      address: undefined,
      manifestKeyId: undefined,
      settingsDigests: undefined,
      figures: figuresText(administration.activity.snapshot(), [], Date.now()),
      figuresAgeMs: 60_000,
    };
    const own = await startApiClient({
      instances: () => ["this", "other"].map((id) => ({ ...reported, id })),
    });
    try {
      const cookie = `svc_session=${own.admin}`;
      assert.equal((await fetch(`${own.administration.url}/admin`, { headers: { cookie } })).status, 200);
      const { stats } = repositorySchema.parse(await own.listed());
      assert.equal(stats.instances, 2);
      assert.ok(stats.figures_age_seconds >= 60);
    } finally {
      await own.administration.stop();
    }
  });
});

describe("warming by hand", () => {
  it("gives 202 when it began, and 409 with the missing setting when it cannot [svc 6.5]", async () => {
    const responses = new Map<string, WarmStart>([
      ["org/yes", "started"],
      ["org/off", "not_cached"],
    ]);
    const own = await startAdministration({
      warm: (name) => responses.get(name) ?? "no_credential",
    });
    try {
      const token = await own.session("ada", "admin");
      const headers = { Authorization: `Bearer ${token}` };
      const post = async (id: string): Promise<Response> =>
        fetch(`${own.url}/api/cached-repos/${id}/warm`, { method: "POST", headers });
      const codes: unknown[] = [];
      for (const name of ["yes", "off", "none"]) {
        const record = await own.repositories.add({
          owner: "org",
          name,
          enabled: true,
          timeoutSeconds: undefined,
          maxCacheSizeMb: undefined,
          seed: undefined,
          bundles: undefined,
        });
        const response = await post(record.id);
        const body = response.status === 202 ? {} : ((await response.json()) as Record<string, string>);
        codes.push([response.status, body["code"]]);
        if (name === "none") assert.match(body["hint"] ?? "", /SVC_CACHE_SERVICE_TOKEN/);
      }
      assert.deepEqual(codes, [
        [202, undefined],
        [409, "cannot_warm"],
        [409, "cannot_warm"],
      ]);
      assert.equal((await post("0198-no-such")).status, 404);
    } finally {
      await own.stop();
    }
  });
});

describe("one cached repository", () => {
  it("PATCH changes the given fields immediately [svc 6.3]", async () => {
    const { id, name } = await listed();
    const response = await send(`/api/cached-repos/${id}`, {
      method: "PATCH",
      body: { enabled: false, timeout_seconds: 600, max_cache_size_mb: 2048, seed: false, bundles: true },
    });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("etag"), '"2"');
    assert.deepEqual(administration.repositories.find("acme", String(name)), {
      id,
      owner: "acme",
      name,
      enabled: false,
      timeoutSeconds: 600,
      maxCacheSizeMb: 2048,
      seed: false,
      bundles: true,
    });
    assert.equal((await send(`/api/cached-repos/${id}`)).json["seed"], false);
    assert.equal((await send(`/api/cached-repos/${id}`)).json["bundles"], true);
    const reset = await send(`/api/cached-repos/${id}`, {
      method: "PATCH",
      body: { seed: null, bundles: null },
    });
    assert.equal(reset.json["seed"], true);
    assert.equal(reset.json["bundles"], false);
    assert.equal(
      (await send(`/api/cached-repos/${id}`, { method: "PATCH", body: { enabled: true } })).json["enabled"],
      true,
    );
  });

  it("cache.seeds is the default of seed", async () => {
    const { id } = await listed();
    const patch = async (seed: boolean | null): Promise<unknown> =>
      (await send(`/api/cached-repos/${id}`, { method: "PATCH", body: { seed } })).json["seed"];
    try {
      administration.repositories.seeds = false;
      assert.equal((await send(`/api/cached-repos/${id}`)).json["seed"], false);
      assert.deepEqual([await patch(true), await patch(null)], [true, false]);
    } finally {
      administration.repositories.seeds = true;
    }
    assert.equal((await send(`/api/cached-repos/${id}`)).json["seed"], true);
  });

  it("PATCH: limit 0 clears it, null resets both [svc 6.3 11.2]", async () => {
    const { id } = await listed({ timeout_seconds: 60, max_cache_size_mb: 5 });
    const patch = async (body: unknown): Promise<Record<string, unknown>> =>
      (await send(`/api/cached-repos/${id}`, { method: "PATCH", body })).json;
    assert.equal((await patch({ max_cache_size_mb: 0 }))["max_cache_size_mb"], null);
    assert.equal((await patch({ max_cache_size_mb: 7 }))["max_cache_size_mb"], 7);
    const reset = await patch({ max_cache_size_mb: null, timeout_seconds: null });
    assert.deepEqual([reset["max_cache_size_mb"], reset["timeout_seconds"]], [null, 30]);
  });

  it("PATCH refuses wrong values, and owner and name", async () => {
    const { id } = await listed();
    for (const [body, status] of [
      [{ timeout_seconds: 0 }, 422],
      [{ timeout_seconds: 3601 }, 422],
      [{ max_cache_size_mb: -1 }, 422],
      [{ enabled: null }, 422],
      [{ owner: "x" }, 400],
      [[], 400],
    ] as const) {
      assert.equal((await send(`/api/cached-repos/${id}`, { method: "PATCH", body })).status, status);
    }
  });

  it("PATCH and DELETE honour If-Match", async () => {
    const { id } = await listed();
    const path = `/api/cached-repos/${id}`;
    const patch = async (tag: string, enabled: boolean): Promise<number> =>
      (await send(path, { method: "PATCH", body: { enabled }, headers: { "if-match": tag } })).status;
    assert.equal(await patch('"2"', false), 412);
    assert.equal(await patch('"1"', false), 200);
    assert.equal(await patch('"1"', true), 412);
    assert.equal(await patch('"9", "2"', true), 200);
    assert.equal(await patch("*", false), 200);
    assert.equal((await send(path, { method: "DELETE", headers: { "if-match": '"1"' } })).status, 412);
    assert.equal((await send(path, { method: "DELETE", headers: { "if-match": '"4"' } })).status, 204);
  });

  it("DELETE removes the record and its data, and is 404 the second time [svc 6.4]", async () => {
    const { id, name } = await listed();
    assert.equal((await send(`/api/cached-repos/${id}`, { method: "DELETE" })).status, 204);
    assert.equal(administration.repositories.find("acme", String(name)), undefined);
    assert.ok(administration.purged.includes(`acme/${String(name)}`));
    assert.equal((await send(`/api/cached-repos/${id}`, { method: "DELETE" })).status, 404);
    await listed({ name });
  });

  it("purge removes the data and keeps the record [svc 6.5]", async () => {
    const { id, name } = await listed();
    assert.equal((await send(`/api/cached-repos/${id}/purge`, { method: "POST" })).status, 202);
    assert.ok(administration.purged.includes(`acme/${String(name)}`));
    assert.equal((await send(`/api/cached-repos/${id}`)).status, 200);
    const purge = async (wait: string) =>
      send(`/api/cached-repos/${id}/purge?wait=${wait}`, { method: "POST" });
    assert.deepEqual((await purge("0")).json, { state: "purging" });
    assert.deepEqual((await purge("60")).json, { state: "purged" });
    for (const wait of ["61", "-1", "1.5", ""]) assert.equal((await purge(wait)).status, 400, wait);
  });

  it("an id that is not there is 404 for every method", async () => {
    for (const method of ["GET", "PATCH", "DELETE"]) {
      const sent = { method, ...(method === "PATCH" ? { body: {} } : {}) };
      assert.equal((await send("/api/cached-repos/none", sent)).status, 404, method);
    }
  });
});
