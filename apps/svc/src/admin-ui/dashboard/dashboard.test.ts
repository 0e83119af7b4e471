import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { after, before, describe, it } from "node:test";
import { figuresText } from "../../administration/instances/instance-figures.ts";
import type { ReportedInstance } from "../../storage/coordination-store.ts";
import { until } from "@devplat/testkit";
import {
  NO_STATS,
  startAdministration,
  type TestAdministration,
} from "../../assemble/administration.test-kit.ts";

/** Fits no text. */
const NOTHING = /(?!)/;
const NO_LIMITS = {
  timeoutSeconds: undefined,
  maxCacheSizeMb: undefined,
  seed: undefined,
  bundles: undefined,
};

describe("the dashboard", () => {
  let stand: TestAdministration;
  let admin: string;
  let hits = 0;
  before(async () => {
    stand = await startAdministration({ stats: () => ({ hits, misses: 1, bytesSaved: hits * 1024 }) });
    admin = await stand.session("ada", "admin");
    await stand.repositories.add({ owner: "acme", name: "widgets", enabled: true, ...NO_LIMITS });
  });
  after(async () => {
    stand.dashboard.close();
    await stand.stop();
  });

  const open = async (path: string, token = admin): Promise<Response> =>
    fetch(stand.url + path, { redirect: "manual", headers: { cookie: `svc_session=${token}` } });
  /** Reads the stream until what was read fits; undefined: it ended before. */
  const readUntil = async (
    reader: ReadableStreamDefaultReader<Uint8Array>,
    pattern: RegExp,
  ): Promise<string | undefined> => {
    let text = "";
    while (!pattern.test(text)) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += Buffer.from(value).toString();
    }
    return text;
  };
  const streamReader = async (token = admin): Promise<ReadableStreamDefaultReader<Uint8Array>> => {
    const response = await open("/admin/live", token);
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
    assert.match(response.headers.get("content-security-policy") ?? "", /default-src 'self'/);
    assert.ok(response.body !== null);
    return response.body.getReader();
  };

  it("is the start page of admins; plain users are led to their tokens", async () => {
    const page = await (await open("/admin")).text();
    for (const text of [
      "Hit rate",
      "Egress saved",
      "Health",
      "Requests",
      "Slowest fetches",
      "Recent denials",
    ]) {
      assert.ok(page.includes(text), text);
    }
    assert.match(page, /acme\/<wbr \/>widgets/);
    const plain = await stand.session("bob", "user");
    assert.equal((await open("/admin", plain)).headers.get("location"), "/admin/tokens");
    assert.equal((await open("/admin/live", plain)).status, 403);
  });

  it("names what was refused, without a way into the page for what a client chose", async () => {
    stand.activity.audited({
      action: "access.denied",
      outcome: "denied",
      actor: { kind: "foreign" },
      target: "acme/<script>x",
      remoteAddress: "192.0.2.7",
    });
    const page = await (await open("/admin")).text();
    assert.match(page, /acme\/<wbr \/>&lt;script&gt;x/);
    assert.match(page, /192\.0\.2\.7/);
  });

  it("its stream begins with the state, and sends what changed, once", async () => {
    const reader = await streamReader();
    assert.match((await readUntil(reader, /<\/hx-partial>/)) ?? "", /hx-target="#dashboard"/);
    hits = 3;
    await stand.dashboard.refresh();
    await stand.dashboard.refresh();
    assert.match((await readUntil(reader, /<\/hx-partial>/)) ?? "", /75 %/);
    await reader.cancel();
  });

  it("its stream ends with the session that it was opened under, and others go on", async () => {
    const other = await stand.session("eve", "admin");
    const [ending, staying] = [await streamReader(other), await streamReader()];
    await readUntil(ending, /<\/hx-partial>/);
    await readUntil(staying, /<\/hx-partial>/);
    await fetch(`${stand.url}/auth/logout`, {
      method: "POST",
      headers: { authorization: `Bearer ${other}` },
    });
    hits++;
    await stand.dashboard.refresh();
    assert.equal(await readUntil(ending, NOTHING), undefined);
    assert.notEqual(await readUntil(staying, /<\/hx-partial>/), undefined);
    await staying.cancel();
  });

  it("the address of the stream, opened as a page, leads to the page", async () => {
    // fetch() says itself what mode it is in.
    const headers = { cookie: `svc_session=${admin}`, "sec-fetch-mode": "navigate" };
    const [response] = (await once(get(`${stand.url}/admin/live`, { headers }), "response")) as [
      IncomingMessage,
    ];
    response.resume();
    assert.deepEqual([response.statusCode, response.headers.location], [303, "/admin"]);
  });

  it("a service that stops ends the streams, those to come, too", async () => {
    const reader = await streamReader();
    stand.dashboard.close();
    assert.equal(await readUntil(reader, NOTHING), undefined);
    assert.equal(await readUntil(await streamReader(), NOTHING), undefined);
  });
});

describe("the list of cached repositories", () => {
  let stand: TestAdministration;
  let admin: string;
  let ids: readonly string[];
  before(async () => {
    stand = await startAdministration();
    admin = await stand.session("ada", "admin");
    const names = Array.from({ length: 205 }, (_, index) => `r${String(index).padStart(3, "0")}`);
    const added = [];
    for (const name of names)
      added.push(await stand.repositories.add({ owner: "acme", name, enabled: true, ...NO_LIMITS }));
    ids = added.map(({ id }) => id);
  });
  after(async () => stand.stop());

  const shown = async (query: string): Promise<readonly string[]> => {
    const page = await fetch(`${stand.url}/admin/repositories${query}`, {
      headers: { cookie: `svc_session=${admin}` },
    });
    return [...(await page.text()).matchAll(/<tr id="repo-([\w-]+)"/g)].map(([, id = ""]) => id);
  };

  it("shows 100 entries in a page; too large a number is the last page, text the first", async () => {
    assert.deepEqual(await shown(""), ids.slice(0, 100));
    assert.deepEqual(await shown("?page=2"), ids.slice(100, 200));
    assert.deepEqual(await shown("?page=9"), ids.slice(200));
    for (const odd of ["0", "-1", "x", "1e9", "9".repeat(30)]) {
      assert.deepEqual(await shown(`?page=${odd}`), ids.slice(0, 100), odd);
    }
  });

  it("shows the page of the record that was changed, or is edited", async () => {
    assert.deepEqual(await shown(`?done=saved&at=${ids[150]}`), ids.slice(100, 200));
    assert.deepEqual(await shown(`?edit=${ids[204]}`), ids.slice(200));
    assert.deepEqual(await shown(`?at=${randomUUID()}`), ids.slice(0, 100));
  });

  it("is searched by part of owner and name, in any case", async () => {
    assert.deepEqual(await shown("?search=ACME%2FR20"), ids.slice(200));
    assert.deepEqual(await shown("?search=none"), []);
  });
});

describe("the dashboard of several instances", () => {
  it("adds up the instances, and says which and how old their figures are", async () => {
    let instances: readonly ReportedInstance[] = [];
    const stand = await startAdministration({
      stats: () => ({ hits: 0, misses: 1, seed: { madeAt: Date.now() - 7_300_000, bytes: 2 ** 20 } }),
      instances: () => instances,
    });
    const admin = await stand.session("ada", "admin");
    await stand.repositories.add({ owner: "acme", name: "widgets", enabled: true, ...NO_LIMITS });
    const open = async (): Promise<string> =>
      (await fetch(`${stand.url}/admin`, { headers: { cookie: `svc_session=${admin}` } })).text();
    const alone = await open();
    assert.match(alone, /What this instance did since/);
    const stats = { ...NO_STATS, hits: 40, misses: 9, bytesSaved: 2 ** 30, secondsSaved: 150, sizeBytes: 3 };
    const figures = figuresText(stand.activity.snapshot(), [{ key: "acme/widgets", stats }], Date.now());
    const unknown = {
      address: undefined,
      manifestKeyId: undefined,
      settingsDigests: '{"cache.object_bucket":"1"}',
    };
    const reported = {
      ...unknown,
      version: "9.9.9",
      ready: true,
      uptimeMs: 3 * 3_600_000,
      reportAgeMs: 2000,
    };
    instances = [
      { ...reported, id: "this", hostName: "one", address: "one:8080", figures, figuresAgeMs: 1000 },
      {
        ...reported,
        id: "i2",
        hostName: "two<b>",
        figures,
        figuresAgeMs: 130_000,
        settingsDigests: '{"cache.object_bucket":"2"}',
      },
      { ...reported, id: "i3", hostName: "three", figures: undefined, figuresAgeMs: undefined },
      {
        ...reported,
        id: "i4",
        hostName: "four",
        figures: "{",
        figuresAgeMs: 10,
        reportAgeMs: 60_000,
        ready: false,
      },
    ];
    // Other instances are read every five seconds.
    const page = await until(async () => {
      const text = await open();
      return text.includes("instances did since their starts") && text;
    });
    // 40 of 40 + 9 elsewhere, and none of 1 here.
    assert.match(page, /of 50</);
    assert.match(page, /1\.0 GB\s*<span class="small">and 3 min of CPU</);
    assert.match(page, /two&lt;b&gt;/);
    assert.match(page, /2 min old/);
    assert.match(page, /two&lt;b&gt;[^]*another cache\.object_bucket[^]*2 min old/);
    assert.equal(page.match(/another cache/g)?.length, 1);
    assert.match(page, /this one/);
    assert.match(page, /four[^]*not ready[^]*1 min ago/);
    assert.match(page, /one:8080[^]*>2 s ago</);
    assert.match(page, /What 2 instances did/);
    assert.match(page, /three[^]*not added yet/);
    const headers = { cookie: `svc_session=${admin}`, authorization: `Bearer ${admin}` };
    const list = await (await fetch(`${stand.url}/admin/repositories`, { headers })).text();
    assert.match(list, /Figures of 2 instances since their starts, those of the others up to 3 min old/);
    assert.match(list, /of 50</);
    assert.match(list, /seed: 1\.0 MB, 2 h ago\s*</);
    const bearer = { authorization: `Bearer ${admin}` };
    const [listed] = (await (await fetch(`${stand.url}/api/cached-repos`, { headers: bearer })).json()) as {
      stats: Record<string, number> & { seed: { made_at: string; bytes: number } };
    }[];
    const { seed } = listed!.stats;
    assert.equal(seed.bytes, 2 ** 20);
    assert.ok(Math.abs(Date.parse(seed.made_at) - Date.now() + 7_300_000) < 120_000, seed.made_at);
    const { hits, misses, instances: count, figures_age_seconds: age = 0, seconds_saved } = listed!.stats;
    assert.deepEqual([hits, misses, count, seconds_saved], [40, 10, 2, 150]);
    // The figures were 130 s old when they were read, some time ago.
    assert.ok(age >= 130 && age < 190, String(age));
    stand.dashboard.close();
    await stand.stop();
  });
});
