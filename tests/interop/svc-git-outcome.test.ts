import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { FLUSH_PKT } from "@devplat/git-protocol";
import { git, until } from "@devplat/testkit";
import { PROXY_TOKEN, basic, command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const AUTH = { Authorization: basic("ada-token") };
const V2 = { ...AUTH, "Git-Protocol": "version=2" };
const OURS = { Authorization: basic(PROXY_TOKEN) };
const UNKNOWN = { Authorization: basic("svcx_unknown") };
const LS_REFS = command("ls-refs", ["ref-prefix refs/heads/"]);
const RESULTS = ["hit", "miss", "rejected", "error", "passthrough", "bypass", "nocache"] as const;
type Result = (typeof RESULTS)[number];
/** Outcomes that the log has no word for: it is empty. */
const UNLOGGED: readonly Result[] = ["bypass", "nocache"];

interface Row {
  readonly name: string;
  /** `enabled` by default. */
  readonly state?: "disabled" | "unlisted";
  /** Statuses of the code host's next answers to a command. */
  readonly fault?: { readonly command?: string; readonly status: number };
  readonly send: (path: string, fetch: Buffer) => Promise<Answer>;
  readonly outcome: Result;
  /** Whether the metric counts the request. */
  readonly counted: boolean;
}

describe("X-Svc-Cache, svc_cache_request_total and cache_state [svc 5.9]", { timeout: 240_000 }, () => {
  let stand: Stand;
  let name: string;
  let fetch: Buffer;
  let count = 0;
  before(async () => {
    stand = await startStand();
    stand.codeHost.addUser("ada", "ada-token");
    stand.codeHost.addUser("stored", "stored-secret");
  });
  after(() => stand.stop());
  beforeEach(async () => {
    name = `r${++count}`;
    const { path } = await stand.codeHost.addRepository("org", name, { private: true });
    stand.list("org", name);
    fetch = command("fetch", [`want ${await git(["-C", path, "rev-parse", "main"])}`, "done"]);
    stand.codeHost.clearFaults();
    stand.access.length = 0;
  });

  const post = async (body: Buffer, headers: Record<string, string> = AUTH): Promise<Answer> =>
    stand.post(`org/${name}`, body, headers);
  const ask = async (
    tail: string,
    headers: Record<string, string>,
    method = "GET",
    body?: Buffer,
  ): Promise<Answer> =>
    stand.ask(`/org/${name}${tail}`, { method, headers, ...(body === undefined ? {} : { body }) });
  const twice = async (body: Buffer): Promise<Answer> => {
    await post(body);
    await stand.cache.settled();
    stand.access.length = 0;
    return post(body);
  };
  const counts = async (): Promise<Record<string, number>> => {
    const found: Record<string, number> = {};
    for (const result of RESULTS) {
      const labels = [`owner="org",repo="${name}"`, `owner="",repo=""`];
      for (const each of labels) {
        const value = await stand.metric(`svc_cache_request_total{${each},result="${result}"}`);
        if (value > 0) found[result] = (found[result] ?? 0) + value;
      }
    }
    return found;
  };

  const both = (body: Buffer): Buffer => Buffer.concat([LS_REFS, body]);
  const infoRefs = "/info/refs?service=git-upload-pack";
  const lfs = { "Content-Type": "application/vnd.git-lfs+json" };
  const batch = Buffer.from(`{"operation":"download","objects":[]}`);
  const rows: readonly Row[] = [
    { name: "a first fetch", send: async (_, body) => post(body), outcome: "miss", counted: true },
    { name: "a second fetch", send: async (_, body) => twice(body), outcome: "hit", counted: true },
    { name: "ls-refs", send: async () => post(LS_REFS), outcome: "passthrough", counted: false },
    {
      name: "ls-refs and a first fetch in one body",
      send: async (_, body) => post(both(body)),
      outcome: "miss",
      counted: true,
    },
    {
      name: "ls-refs and a second fetch in one body",
      send: async (_, body) => twice(both(body)),
      outcome: "hit",
      counted: true,
    },
    {
      name: "two fetches in one body",
      send: async (_, body) => post(Buffer.concat([LS_REFS, body, body])),
      outcome: "miss",
      counted: true,
    },
    {
      name: "ls-refs and a fetch that the code host fails, in one body",
      fault: { command: "fetch", status: 500 },
      send: async (_, body) => post(both(body)),
      outcome: "error",
      counted: true,
    },
    {
      name: "ls-refs and a fetch that the code host refuses, in one body",
      fault: { command: "fetch", status: 403 },
      send: async (_, body) => post(both(body)),
      outcome: "rejected",
      counted: true,
    },
    {
      name: "a fetch before its ls-refs",
      send: async (_, body) => post(Buffer.concat([body, LS_REFS])),
      outcome: "rejected",
      counted: true,
    },
    {
      name: "a fetch that the code host refuses",
      fault: { status: 404 },
      send: async (_, body) => post(body),
      outcome: "rejected",
      counted: true,
    },
    {
      name: "ls-refs that the code host refuses",
      fault: { status: 401 },
      send: async () => post(LS_REFS),
      outcome: "rejected",
      counted: true,
    },
    {
      name: "ls-refs that the code host fails",
      fault: { status: 500 },
      send: async () => post(LS_REFS),
      outcome: "error",
      counted: false,
    },
    {
      name: "a fetch that the code host fails",
      fault: { command: "fetch", status: 502 },
      send: async (_, body) => post(body),
      outcome: "error",
      counted: true,
    },
    {
      name: "a body that is no request",
      send: async () => post(Buffer.from("zzzz")),
      outcome: "error",
      counted: true,
    },
    {
      name: "a command that the cache does not know",
      send: async () => post(command("bundle-uri", [])),
      outcome: "passthrough",
      counted: true,
    },
    {
      name: "an object-info that the code host must answer",
      send: async () => post(command("object-info", ["size"])),
      outcome: "miss",
      counted: true,
    },
    { name: "a flush-pkt alone", send: async () => post(FLUSH_PKT), outcome: "passthrough", counted: false },
    {
      name: "a fetch of protocol v0",
      send: async () => post(FLUSH_PKT, { ...AUTH, "Git-Protocol": "version=0", "Content-Type": "x/y" }),
      outcome: "passthrough",
      counted: false,
    },
    { name: "info/refs", send: async () => ask(infoRefs, V2), outcome: "passthrough", counted: false },
    {
      name: "dumb info/refs",
      send: async () => ask("/info/refs", AUTH),
      outcome: "passthrough",
      counted: true,
    },
    { name: "a dumb object", send: async () => ask("/HEAD", AUTH), outcome: "passthrough", counted: false },
    {
      name: "info/refs of a push",
      send: async () => ask("/info/refs?service=git-receive-pack", AUTH),
      outcome: "passthrough",
      counted: false,
    },
    {
      name: "a push",
      send: async () => ask("/git-receive-pack", AUTH, "POST", FLUSH_PKT),
      outcome: "passthrough",
      counted: false,
    },
    {
      name: "an LFS batch",
      send: async () => ask("/info/lfs/objects/batch", { ...AUTH, ...lfs }, "POST", batch),
      outcome: "passthrough",
      counted: false,
    },
    {
      name: "an archive",
      send: async () => ask("/archive/refs/heads/main.tar.gz", AUTH),
      outcome: "passthrough",
      counted: false,
    },
    {
      name: "a fetch with an unknown token of this service",
      send: async (_, body) => post(body, UNKNOWN),
      outcome: "rejected",
      counted: true,
    },
    {
      name: "info/refs with an unknown token of this service",
      send: async () => ask(infoRefs, UNKNOWN),
      outcome: "rejected",
      counted: false,
    },
    {
      name: "an LFS batch with a token of this service that is refused",
      send: async () => ask("/info/lfs/objects/batch", { ...OURS, ...lfs }, "POST", batch),
      outcome: "rejected",
      counted: false,
    },
    {
      name: "a token of this service in another header",
      send: async () => ask(infoRefs, { ...AUTH, "Accept-Language": "svcx_elsewhere" }),
      outcome: "rejected",
      counted: false,
    },
    {
      name: "a method that the address does not take",
      send: async () => ask("/git-upload-pack", AUTH, "GET"),
      outcome: "rejected",
      counted: false,
    },
    {
      name: "a fetch of a disabled repository",
      state: "disabled",
      send: async (_, body) => post(body),
      outcome: "bypass",
      counted: true,
    },
    {
      name: "info/refs of a disabled repository",
      state: "disabled",
      send: async () => ask(infoRefs, V2),
      outcome: "bypass",
      counted: false,
    },
    {
      name: "a fetch of a repository that is not listed",
      state: "unlisted",
      send: async (_, body) => post(body),
      outcome: "nocache",
      counted: true,
    },
    {
      name: "info/refs of a repository that is not listed",
      state: "unlisted",
      send: async () => ask(infoRefs, V2),
      outcome: "nocache",
      counted: false,
    },
    {
      name: "a fetch of an unlisted repository with an unknown token of this service",
      state: "unlisted",
      send: async (_, body) => post(body, UNKNOWN),
      outcome: "rejected",
      counted: false,
    },
  ];

  for (const row of rows) {
    it(`of ${row.name} are ${row.outcome}`, async () => {
      if (row.state === "disabled") stand.list("org", name, { enabled: false });
      if (row.state === "unlisted") stand.unlist("org", name);
      if (row.fault !== undefined) {
        const { command: only, status } = row.fault;
        const where = { path: new RegExp(name), ...(only === undefined ? {} : { command: only }) };
        stand.codeHost.inject(where, { status });
      }
      const earlier = await counts();
      const answer = await row.send(`/org/${name}`, fetch);
      await until(() => stand.access.length > 0);
      assert.equal(answer.headers["x-svc-cache"], row.outcome, answer.text);
      const state = stand.access.at(-1)?.["cache_state"];
      assert.equal(state, UNLOGGED.includes(row.outcome) ? "" : row.outcome);
      const now = await counts();
      const added = Object.keys(now).filter((result) => now[result] !== earlier[result]);
      // The fetch that filled the cache counted before.
      const own = added.filter((result) => result !== "miss" || row.outcome === "miss");
      assert.deepEqual(own, row.counted ? [row.outcome] : []);
      if (row.counted) assert.equal((now[row.outcome] ?? 0) - (earlier[row.outcome] ?? 0), 1);
    });
  }

  it("of an object that the code host lacks are miss, also with a mirror", async () => {
    const unknown = command("fetch", [`want ${"ab".repeat(20)}`, "done"]);
    for (const prepare of [async () => post(LS_REFS), async () => twice(fetch)]) {
      await prepare();
      const answer = await post(unknown);
      assert.match(answer.text, /ERR .*not our ref/);
      assert.equal(answer.headers["x-svc-cache"], "miss");
    }
  });
});
