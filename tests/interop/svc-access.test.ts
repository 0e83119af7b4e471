import assert from "node:assert/strict";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { cp } from "node:fs/promises";
import { after, before, beforeEach, describe, it } from "node:test";
import type { LogFields } from "@devplat/base";
import { encodeErrorLine } from "@devplat/git-protocol";
import { git, until } from "@devplat/testkit";
import { DEFAULTS } from "../../apps/svc/src/config/defaults.ts";
import { ForwardClock } from "./forward-clock.ts";
import { PROXY_TOKEN, basic, command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const ALICE = { Authorization: basic("alice-token") };
const BOB = { Authorization: basic("bob-token") };
const LS_REFS = command("ls-refs", ["ref-prefix refs/heads/"]);
/** Milliseconds, a little more than an authorization is remembered by default. */
const PAST_GRANT_MS = DEFAULTS.grantSeconds * 1000 + 1;
const FETCH_HEADERS = {
  "Content-Type": "application/x-git-upload-pack-request",
  "Git-Protocol": "version=2",
};

interface Warmed {
  readonly fetch: Buffer;
  readonly oid: string;
  readonly path: string;
}

async function add(stand: Stand, name: string, template: string, isPrivate = true): Promise<Warmed> {
  const { path } = await stand.codeHost.addRepository("org", name, {
    private: isPrivate,
    build: (dir) => cp(template, dir, { recursive: true }),
  });
  stand.codeHost.addUser("alice", "alice-token");
  stand.codeHost.addUser("bob", "bob-token");
  stand.list("org", name);
  const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
  return { path, oid, fetch: command("fetch", ["no-progress", `want ${oid}`, "done"]) };
}

/** A repository whose whole answer is stored, and whose mirror is filled. */
async function warm(stand: Stand, name: string, template: string, isPrivate = true): Promise<Warmed> {
  const warmed = await add(stand, name, template, isPrivate);
  await stand.post(`org/${name}`, LS_REFS, ALICE);
  assert.equal((await stand.post(`org/${name}`, warmed.fetch, ALICE)).headers["x-svc-cache"], "miss");
  await stand.cache.settled();
  stand.codeHost.resetCalls();
  return warmed;
}

function assertRefused(answer: Answer, status = 401): void {
  assert.equal(answer.status, status, answer.text.slice(0, 200));
  assert.doesNotMatch(answer.text, /PACK/);
}

const rounds: [string, number][] = [
  ["with the default of grant_seconds", DEFAULTS.grantSeconds],
  ["with grant_seconds 0", 0],
];
for (const [title, grantSeconds] of rounds) {
  describe(`access while a request waits, ${title}`, { timeout: 240_000 }, () => {
    const clock = new ForwardClock();
    let stand: Stand;
    let template = "";
    let name = "";
    let count = 0;
    before(async () => {
      stand = await startStand({ grantSeconds, clock, keepAliveMs: 50, maxUpstreamFetches: 1 });
      ({ path: template } = await stand.codeHost.addRepository("org", "template"));
    });
    beforeEach(() => {
      name = `r${++count}`;
    });
    after(() => stand.stop());

    /** Lets the time pass after which the code host must be asked again; with 0 none is needed. */
    const wait = (): void => {
      if (grantSeconds > 0) clock.advance(PAST_GRANT_MS);
    };

    /** @returns a tip that the mirror lacks */
    const warmAndPush = async (): Promise<string> => {
      const { path } = await warm(stand, name, template);
      await stand.codeHost.push("org", name, { commits: 2 });
      return git(["-C", path, "rev-parse", "main"]);
    };

    it("a caller revoked while it is joined to another's fetch gets no byte of it [svc 1.10]", async () => {
      const { fetch } = await add(stand, name, template);
      await stand.post(`org/${name}`, LS_REFS, ALICE);
      await stand.post(`org/${name}`, LS_REFS, BOB);
      const go = Promise.withResolvers<void>();
      const fetches = stand.upstream("fetch");
      stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
      const planned = stand.planned();
      const leader = stand.post(`org/${name}`, fetch, ALICE);
      await until(() => stand.upstream("fetch") === fetches + 1);
      const joined = stand.post(`org/${name}`, fetch, BOB);
      await until(() => stand.planned() === planned + 2);
      stand.codeHost.revoke("bob-token");
      wait();
      go.resolve();
      assert.match((await leader).text, /PACK/);
      assertRefused(await joined);
    });

    it("callers that still have access after they were joined share one probe [svc 1.11]", async () => {
      const { fetch } = await add(stand, name, template);
      await stand.post(`org/${name}`, LS_REFS, ALICE);
      await stand.post(`org/${name}`, LS_REFS, BOB);
      const go = Promise.withResolvers<void>();
      const fetches = stand.upstream("fetch");
      stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
      const planned = stand.planned();
      const leader = stand.post(`org/${name}`, fetch, ALICE);
      await until(() => stand.upstream("fetch") === fetches + 1);
      const joined = Array.from({ length: 10 }, () => stand.post(`org/${name}`, fetch, BOB));
      await until(() => stand.planned() === planned + 11);
      const probes = stand.upstream("ls-refs");
      wait();
      go.resolve();
      for (const answer of await Promise.all([leader, ...joined])) assert.match(answer.text, /PACK/);
      assert.equal(stand.upstream("ls-refs") - probes, 1);
    });

    it("a caller revoked during another's fetch gets none of its objects [svc 1.10]", async () => {
      const tip = await warmAndPush();
      await stand.post(`org/${name}`, LS_REFS, ALICE);
      await stand.post(`org/${name}`, LS_REFS, BOB);
      const go = Promise.withResolvers<void>();
      const fetches = stand.upstream("fetch");
      stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
      const leader = stand.post(`org/${name}`, command("fetch", [`want ${tip}`, "done"]), ALICE);
      await until(() => stand.upstream("fetch") === fetches + 1);
      const planned = stand.planned();
      const shallow = stand.post(`org/${name}`, command("fetch", [`want ${tip}`, "deepen 1", "done"]), BOB);
      await until(() => stand.planned() === planned + 1);
      stand.codeHost.revoke("bob-token");
      wait();
      go.resolve();
      assert.match((await leader).text, /PACK/);
      assertRefused(await shallow);
    });

    it("a caller revoked during keepalive packets gets an in-band error and no object [svc 1.10]", async () => {
      const tip = await warmAndPush();
      await stand.post(`org/${name}`, LS_REFS, ALICE);
      await stand.post(`org/${name}`, LS_REFS, BOB);
      const go = Promise.withResolvers<void>();
      const fetches = stand.upstream("fetch");
      stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
      const leader = stand.post(`org/${name}`, command("fetch", [`want ${tip}`, "done"]), ALICE);
      await until(() => stand.upstream("fetch") === fetches + 1);
      const { begun, ended } = postWatched(
        stand,
        name,
        command("fetch", [`want ${tip}`, "ofs-delta", "done"]),
        BOB,
      );
      await begun;
      stand.codeHost.revoke("bob-token");
      wait();
      go.resolve();
      assert.match((await leader).text, /PACK/);
      const text = await ended;
      assert.doesNotMatch(text, /PACK/);
      assert.match(text, /refused access while the response was prepared: it answered 401/);
      const isRejected = (line: LogFields): boolean =>
        line["cache_repo"] === `org/${name}` && line["cache_state"] === "rejected";
      await until(() => stand.access.some(isRejected));
    });

    it("a caller revoked while it waits for a turn gets the code host's refusal [svc 1.10]", async () => {
      const { fetch } = await add(stand, name, template);
      const other = await add(stand, `${name}-other`, template);
      await stand.post(`org/${name}-other`, LS_REFS, ALICE);
      await stand.post(`org/${name}`, LS_REFS, BOB);
      const go = Promise.withResolvers<void>();
      const fetches = stand.upstream("fetch");
      stand.codeHost.inject({ command: "fetch", times: 1 }, { until: go.promise });
      const leader = stand.post(`org/${name}-other`, other.fetch, ALICE);
      await until(() => stand.upstream("fetch") === fetches + 1);
      const planned = stand.planned();
      const queued = stand.post(`org/${name}`, fetch, BOB);
      await until(() => stand.planned() === planned + 1);
      stand.codeHost.revoke("bob-token");
      wait();
      go.resolve();
      assert.match((await leader).text, /PACK/);
      assertRefused(await queued);
    });

    it("a caller revoked while it sends its body gets no cached byte [svc 1.10]", async () => {
      const { fetch } = await warm(stand, name, template);
      await stand.post(`org/${name}`, LS_REFS, BOB);
      const { outgoing, answer } = openPost(stand, name, BOB);
      outgoing.write(fetch.subarray(0, 10));
      stand.codeHost.revoke("bob-token");
      wait();
      outgoing.end(fetch.subarray(10));
      const response = await answer;
      response.resume();
      assert.equal(response.statusCode, 401);
    });

    it("an ls-refs in the same body opens the fetch behind it only as long as it counts [svc 1.10]", async () => {
      const { fetch } = await warm(stand, name, template);
      const both = Buffer.concat([LS_REFS, fetch]);
      const first = await stand.post(`org/${name}`, both, BOB);
      assert.match(first.text, /PACK/);
      const go = Promise.withResolvers<void>();
      stand.codeHost.inject({ command: "ls-refs", times: 1 }, { until: go.promise });
      const asked = stand.upstream("ls-refs");
      const slow = stand.post(`org/${name}`, both, BOB);
      await until(() => stand.upstream("ls-refs") === asked + 1);
      wait();
      stand.codeHost.inject({ command: "ls-refs", times: 1 }, { status: 401 });
      go.resolve();
      const { text } = await slow;
      assert.match(text, /refs\/heads\/main/);
      assert.match(text, /ERR the code host answered 401/);
      assert.doesNotMatch(text, /PACK/);
      stand.codeHost.clearFaults();
    });
  });
}

describe("authorizations with the default of grant_seconds", { timeout: 240_000 }, () => {
  const clock = new ForwardClock();
  let stand: Stand;
  let template = "";
  let name = "";
  let count = 0;
  before(async () => {
    stand = await startStand({ grantSeconds: DEFAULTS.grantSeconds, clock, renewed: ALICE.Authorization });
    ({ path: template } = await stand.codeHost.addRepository("org", "template"));
  });
  beforeEach(() => {
    name = `r${++count}`;
  });
  after(() => stand.stop());

  it("the default is five seconds [svc 1.9]", () => {
    assert.equal(DEFAULTS.grantSeconds, 5);
  });

  it("an exact replay after the repository turned private is refused in five seconds [svc 1.33]", async () => {
    const { fetch } = await warm(stand, name, template, false);
    await stand.post(`org/${name}`, LS_REFS);
    assert.equal((await stand.post(`org/${name}`, fetch)).headers["x-svc-cache"], "hit");
    stand.codeHost.setVisibility("org", name, "private");
    clock.advance(PAST_GRANT_MS);
    for (let time = 0; time < 3; time++) assertRefused(await stand.post(`org/${name}`, fetch));
  });

  it("a credential revoked between two fetches opens nothing after five seconds [svc 1.9]", async () => {
    const { fetch } = await warm(stand, name, template);
    await stand.post(`org/${name}`, LS_REFS, BOB);
    assert.match((await stand.post(`org/${name}`, fetch, BOB)).text, /PACK/);
    stand.codeHost.revoke("bob-token");
    clock.advance(PAST_GRANT_MS);
    assertRefused(await stand.post(`org/${name}`, fetch, BOB));
  });

  it("a slow negotiation costs one probe in five seconds, and renews each decision [svc 1.12]", async () => {
    const { fetch } = await warm(stand, name, template);
    await stand.post(`org/${name}`, LS_REFS, BOB);
    stand.codeHost.resetCalls();
    for (let seconds = 0; seconds < 30; seconds += 2) {
      assert.match((await stand.post(`org/${name}`, fetch, BOB)).text, /PACK/);
      clock.advance(2000);
    }
    assert.equal(stand.upstream("ls-refs"), 4);
    stand.codeHost.revoke("bob-token");
    clock.advance(PAST_GRANT_MS);
    assertRefused(await stand.post(`org/${name}`, fetch, BOB));
  });

  it("a refused and renewed credential opens nothing for a caller that presents it [svc 1.7]", async () => {
    const { fetch } = await warm(stand, name, template);
    const token = { Authorization: basic(PROXY_TOKEN) };
    const lsRefs = await stand.post(`org/${name}`, LS_REFS, token);
    assert.equal(lsRefs.status, 200);
    const stored = `Basic ${Buffer.from("x-access-token:stored-secret").toString("base64")}`;
    assertRefused(await stand.post(`org/${name}`, fetch, { Authorization: stored }));
  });

  const result = { "content-type": "application/x-git-upload-pack-result" };
  const advertisement = { "content-type": "application/x-git-upload-pack-advertisement" };
  const unknown = command("fetch", [`want ${"1".repeat(40)}`, "done"]);
  const v1 = { ...ALICE, "Content-Type": FETCH_HEADERS["Content-Type"] };
  const smartRefs = "info/refs?service=git-upload-pack";
  const object = `objects/00/${"0".repeat(38)}`;
  const batch = JSON.stringify({ operation: "download", objects: [] });
  type Fault = Parameters<Stand["codeHost"]["inject"]>[1];
  const moved: Fault = { status: 301, headers: { location: "/org/moved.git/" }, body: "" };
  const error = (headers: Record<string, string>): Fault => ({
    status: 200,
    headers,
    body: encodeErrorLine("no access"),
  });
  const get =
    (path: string, headers: Record<string, string> = ALICE) =>
    (): Promise<Answer> =>
      stand.ask(`/org/${name}.git/${path}`, { headers });
  const post =
    (path: string, body: Buffer | string, headers: Record<string, string>) => (): Promise<Answer> =>
      stand.ask(`/org/${name}.git/${path}`, { method: "POST", body, headers });
  const v2 = { ...ALICE, ...FETCH_HEADERS };
  const refusals: [string, () => Promise<Answer>, Fault][] = [
    ["info/refs answered 401", get(smartRefs), { status: 401 }],
    ["info/refs answered 451", get(smartRefs), { status: 451 }],
    ["an ls-refs answered 410", post("git-upload-pack", LS_REFS, v2), { status: 410 }],
    ["info/refs answered with a redirect", get(smartRefs), moved],
    ["info/refs answered with an ERR packet", get(smartRefs), error(advertisement)],
    ["an ls-refs answered 404", post("git-upload-pack", LS_REFS, v2), { status: 404 }],
    ["an ls-refs answered with a redirect", post("git-upload-pack", LS_REFS, v2), moved],
    ["an ls-refs answered with an ERR packet", post("git-upload-pack", LS_REFS, v2), error(result)],
    ["a forwarded fetch answered 403", post("git-upload-pack", unknown, v2), { status: 403 }],
    ["a forwarded fetch answered with a redirect", post("git-upload-pack", unknown, v2), moved],
    ["a forwarded fetch answered with an ERR packet", post("git-upload-pack", unknown, v2), error(result)],
    ["git's lone flush-pkt answered 401", post("git-upload-pack", "0000", v2), { status: 401 }],
    [
      "an object-info answered with an ERR packet",
      post("git-upload-pack", command("object-info", ["size"]), v2),
      error(result),
    ],
    ["a fetch of protocol v1 answered 404", post("git-upload-pack", "0000", v1), { status: 404 }],
    [
      "a fetch of protocol v1 answered with an ERR packet",
      post("git-upload-pack", "0000", v1),
      error(result),
    ],
    ["dumb info/refs answered 404", get("info/refs"), { status: 404 }],
    ["a dumb HEAD answered 401", get("HEAD"), { status: 401 }],
    ["a dumb object answered 404", get(object), { status: 404 }],
    ["a dumb object answered with a redirect", get(object), moved],
    ["an archive answered 404", get("archive/main.tar.gz"), { status: 404 }],
    [
      "an archive answered with a redirect to a login",
      get("archive/main.tar.gz"),
      { status: 302, headers: { location: "/login" }, body: "" },
    ],
    [
      "an archive handed out elsewhere",
      get("archive/main.tar.gz"),
      { status: 302, headers: { location: "https://files.example/x" }, body: "" },
    ],
    [
      "a raw file answered 403",
      get("raw/main/file.txt", { ...ALICE, Host: "code.example" }),
      { status: 403 },
    ],
    ["an object of LFS answered 404", get(`info/lfs/objects/${"0".repeat(64)}`), { status: 404 }],
    ["a batch of LFS answered 401", post("info/lfs/objects/batch", batch, ALICE), { status: 401 }],
  ];
  for (const [title, send, fault] of refusals) {
    it(`${title} deletes the authorization [svc 1.5]`, async () => {
      const { fetch } = await warm(stand, name, template);
      await stand.post(`org/${name}`, LS_REFS, ALICE);
      assert.equal((await stand.post(`org/${name}`, fetch, ALICE)).headers["x-svc-cache"], "hit");
      const asked = stand.upstream("ls-refs");
      stand.codeHost.inject({ path: new RegExp(`${name}\\.git/`), times: 1 }, fault);
      await send();
      stand.codeHost.clearFaults();
      const sent = stand.upstream("ls-refs");
      assert.ok(sent - asked <= 1);
      stand.codeHost.revoke("alice-token");
      assertRefused(await stand.post(`org/${name}`, fetch, ALICE));
      assert.equal(stand.upstream("ls-refs"), sent + 1);
    });
  }
});

function openPost(
  stand: Stand,
  name: string,
  headers: Record<string, string>,
): { outgoing: ReturnType<typeof httpRequest>; answer: Promise<IncomingMessage> } {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const outgoing = httpRequest(
    `${stand.url}/org/${name}/git-upload-pack`,
    { method: "POST", agent: false, headers: { ...FETCH_HEADERS, ...headers } },
    resolve,
  );
  outgoing.on("error", reject);
  return { outgoing, answer: promise };
}

/** Posts a body. `begun` resolves with the first bytes of the answer, `ended` with the whole text. */
function postWatched(
  stand: Stand,
  name: string,
  body: Buffer,
  headers: Record<string, string>,
): { begun: Promise<void>; ended: Promise<string> } {
  const begun = Promise.withResolvers<void>();
  const { outgoing, answer } = openPost(stand, name, headers);
  outgoing.end(body);
  const ended = answer.then(async (response) => {
    const parts: Buffer[] = [];
    response.on("data", (chunk: Buffer) => {
      parts.push(chunk);
      begun.resolve();
    });
    // An answer that fails in its middle ends with the connection.
    response.on("error", () => undefined);
    await new Promise((resolve) => response.once("close", resolve));
    begun.reject(new Error(`the answer ended with ${response.statusCode} before it began`));
    return Buffer.concat(parts).toString("latin1");
  });
  return { begun: begun.promise, ended };
}
