import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { FLUSH_PKT } from "@devplat/git-protocol";
import { git, repositories } from "@devplat/testkit";
import { ForwardClock } from "./forward-clock.ts";
import { basic, command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const AUTH = { Authorization: basic("ada-token") };
const LS_REFS = command("ls-refs", ["peel", "symrefs", "ref-prefix HEAD", "ref-prefix refs/heads/"]);
const LS_REFS_WITH_TAGS = command("ls-refs", ["peel", "ref-prefix refs/heads/", "ref-prefix refs/tags/"]);
/** Seconds. */
const GRANT_SECONDS = 5;
const UNKNOWN = "1234567890".repeat(4);

/**
 * The exact requests that each kind of request causes at the code host, in their order. These lists must not change
 * when only the structure of the code changes.
 */
describe("requests to the code host for each kind of request", { timeout: 240_000 }, () => {
  const clock = new ForwardClock();
  let stand: Stand;
  let name: string;
  let path: string;
  let tip: string;
  let count = 0;
  before(async () => {
    stand = await startStand({ grantSeconds: GRANT_SECONDS, clock, maxUpstreamFetches: 4 });
    stand.codeHost.addUser("ada", "ada-token");
  });
  after(() => stand.stop());
  beforeEach(async () => {
    name = `r${++count}`;
    ({ path } = await stand.codeHost.addRepository("org", name, {
      private: true,
      build: (dir) => repositories.linear(dir, { commits: 5 }),
    }));
    await git(["-C", path, "config", "uploadpack.allowFilter", "true"]);
    await git(["-C", path, "config", "uploadpack.allowAnySHA1InWant", "true"]);
    tip = await git(["-C", path, "rev-parse", "main"]);
    stand.list("org", name);
    stand.codeHost.resetCalls();
  });

  const post = (body: Buffer, headers: Record<string, string> = AUTH): Promise<Answer> =>
    stand.post(`org/${name}`, body, headers);
  const fetchOf = (...args: string[]): Buffer => command("fetch", [...args, "done"]);
  const clone = (): Buffer => fetchOf(`want ${tip}`);
  const advertisement = (headers: Record<string, string> = AUTH): Promise<Answer> =>
    stand.ask(`/org/${name}/info/refs?service=git-upload-pack`, {
      headers: { ...headers, "Git-Protocol": "version=2" },
    });
  /** A client has cloned, the response is stored and the mirror is filled. The authorization is still remembered. */
  const cached = async (): Promise<void> => {
    await advertisement();
    await post(LS_REFS);
    await post(clone());
    await stand.cache.settled();
    stand.codeHost.resetCalls();
  };

  /** Short names of the requests since the last reset: `probe` is an `ls-refs` of the service's own. */
  function requests(): string[] {
    return stand.codeHost.calls.map((call) => {
      const isOwn = call.headers["user-agent"]?.startsWith("svc/") === true;
      if (call.command === "ls-refs") return isOwn ? "probe" : "ls-refs";
      if (call.command !== undefined) return call.command;
      return `${call.method} ${call.path.slice(call.path.indexOf(name) + name.length + 1)}`;
    });
  }
  /** Sends a request, waits for the work behind it and compares what it caused. */
  async function assertCauses(send: () => Promise<Answer>, state: string, expected: string[]): Promise<void> {
    stand.codeHost.resetCalls();
    const answer = await send();
    await stand.cache.settled();
    assert.deepEqual(
      { state: answer.headers["x-svc-cache"], requests: requests() },
      { state, requests: expected },
    );
  }

  it("an advertisement, an ls-refs, a first clone and the same clone again", async () => {
    await assertCauses(advertisement, "passthrough", ["GET info/refs"]);
    await assertCauses(() => post(LS_REFS), "passthrough", ["ls-refs"]);
    await assertCauses(() => post(clone()), "miss", ["fetch"]);
    await assertCauses(() => post(LS_REFS), "passthrough", ["ls-refs"]);
    await assertCauses(() => post(clone()), "hit", []);
  });

  it("a first clone whose pack cannot fill the mirror", async () => {
    await advertisement();
    await post(LS_REFS);
    await assertCauses(() => post(fetchOf(`want ${tip}`, "deepen 1")), "miss", ["fetch", "probe", "fetch"]);
  });

  it("a fetch without an ls-refs: a miss, then hits with a probe each", async () => {
    await assertCauses(() => post(clone()), "miss", ["probe", "fetch"]);
    await assertCauses(() => post(clone()), "hit", ["probe"]);
    await assertCauses(() => post(clone()), "hit", ["probe"]);
  });

  it("a fetch long after the ls-refs renews the authorization once", async () => {
    await cached();
    clock.advance(GRANT_SECONDS * 1000);
    await assertCauses(() => post(clone()), "hit", ["probe"]);
    await assertCauses(() => post(clone()), "hit", []);
  });

  it("a fetch with haves, built from the mirror, and stored after that", async () => {
    await cached();
    const old = await git(["-C", path, "rev-parse", "main~2"]);
    const fetch = fetchOf(`want ${tip}`, `have ${old}`);
    await assertCauses(() => post(fetch), "hit", []);
    await assertCauses(() => post(fetch), "hit", []);
  });

  it("a fetch after a push fetches what the mirror lacks once", async () => {
    await cached();
    await stand.codeHost.push("org", name, { commits: 1 });
    const next = await git(["-C", path, "rev-parse", "main"]);
    const old = await git(["-C", path, "rev-parse", `${tip}~2`]);
    await assertCauses(() => post(LS_REFS), "passthrough", ["ls-refs"]);
    await assertCauses(() => post(fetchOf(`want ${next}`, `have ${tip}`)), "miss", ["fetch"]);
    await assertCauses(() => post(fetchOf(`want ${next}`, `have ${old}`)), "hit", []);
  });

  it("two equal fetches at the same time", async () => {
    await post(LS_REFS);
    stand.codeHost.resetCalls();
    const states = (await Promise.all([post(clone()), post(clone())])).map(
      (answer) => answer.headers["x-svc-cache"],
    );
    await stand.cache.settled();
    assert.deepEqual(
      { states: states.toSorted((a, b) => String(a).localeCompare(String(b))), requests: requests() },
      { states: ["hit", "miss"], requests: ["fetch"] },
    );
  });

  it("a shallow and a partial fetch, where the advertisement is not known yet", async () => {
    await post(LS_REFS);
    await post(clone());
    await stand.cache.settled();
    await assertCauses(() => post(fetchOf(`want ${tip}`, "deepen 1")), "hit", ["GET info/refs"]);
    await assertCauses(() => post(fetchOf(`want ${tip}`, "filter blob:none")), "hit", []);
  });

  it("a want that a known ref reaches", async () => {
    await cached();
    const below = await git(["-C", path, "rev-parse", "main~1"]);
    await assertCauses(() => post(fetchOf(`want ${below}`)), "hit", []);
  });

  it("a want that no known ref shows asks for branches and tags once in ten seconds", async () => {
    await cached();
    await git(["-C", path, "update-ref", "refs/heads/main", "main~2"]);
    await git(["-C", path, "update-ref", "refs/pull/1/head", tip]);
    await post(LS_REFS);
    await assertCauses(() => post(fetchOf(`want ${tip}`, "ofs-delta")), "miss", ["probe", "fetch"]);
    await assertCauses(() => post(fetchOf(`want ${tip}`, "thin-pack")), "miss", ["fetch"]);
  });

  it("a want that is not stored and that no known ref shows", async () => {
    await cached();
    await assertCauses(() => post(fetchOf(`want ${UNKNOWN}`)), "miss", ["fetch"]);
  });

  it("a fetch by the name of a ref resolves the name at the code host", async () => {
    await cached();
    await assertCauses(() => post(fetchOf("want-ref refs/heads/main")), "hit", ["probe"]);
    await assertCauses(() => post(fetchOf("want-ref refs/heads/main")), "hit", ["probe"]);
  });

  it("a fetch with tags, before and after an ls-refs showed them", async () => {
    await cached();
    clock.advance(GRANT_SECONDS * 1000);
    const fetch = fetchOf(`want ${tip}`, "include-tag");
    await assertCauses(() => post(fetch), "hit", ["probe"]);
    await assertCauses(() => post(fetch), "hit", []);
    await post(LS_REFS_WITH_TAGS);
    await assertCauses(() => post(fetch), "hit", []);
  });

  it("a fetch with an argument that is not known is forwarded", async () => {
    await cached();
    await assertCauses(() => post(fetchOf(`want ${tip}`, "surprise")), "miss", ["fetch"]);
  });

  it("a fetch with a server-option is forwarded once, then stored", async () => {
    await cached();
    const fetch = command("fetch", [`want ${tip}`, "done"], ["object-format=sha1", "server-option=a"]);
    await assertCauses(() => post(fetch), "miss", ["fetch"]);
    await assertCauses(() => post(fetch), "hit", []);
  });

  it("an ls-refs and a fetch in one body", async () => {
    await cached();
    await assertCauses(() => post(Buffer.concat([LS_REFS, clone()])), "hit", ["ls-refs"]);
  });

  it("a refused advertisement, ls-refs and fetch, of another client after a clone", async () => {
    await cached();
    await assertCauses(() => advertisement({}), "passthrough", ["GET info/refs"]);
    await assertCauses(() => post(LS_REFS, {}), "rejected", ["ls-refs"]);
    await assertCauses(() => post(clone(), {}), "rejected", ["probe"]);
  });

  it("a refusal ends the authorization, and the next fetch sends a probe", async () => {
    await cached();
    stand.codeHost.inject({ path: new RegExp(name) }, { status: 403 });
    await assertCauses(() => post(clone()), "hit", []);
    await assertCauses(() => post(LS_REFS), "rejected", ["ls-refs"]);
    await assertCauses(() => post(clone()), "rejected", ["probe"]);
    stand.codeHost.clearFaults();
    await assertCauses(() => post(clone()), "hit", ["probe"]);
  });

  it("a refused push ends the remembered authorization", async () => {
    await cached();
    stand.codeHost.inject({ path: new RegExp(`${name}.*receive-pack`) }, { status: 403 });
    const push = (): Promise<Answer> =>
      stand.ask(`/org/${name}/git-receive-pack`, { method: "POST", body: FLUSH_PKT, headers: AUTH });
    await assertCauses(push, "passthrough", ["POST git-receive-pack"]);
    stand.codeHost.clearFaults();
    await assertCauses(() => post(clone()), "hit", ["probe"]);
  });

  it("a removed and a disabled repository", async () => {
    await cached();
    await stand.cache.purge("org", name);
    await assertCauses(() => post(clone()), "miss", ["fetch"]);
    stand.list("org", name, { enabled: false });
    await assertCauses(() => post(LS_REFS), "bypass", ["ls-refs"]);
    await assertCauses(() => post(clone()), "bypass", ["fetch"]);
    stand.unlist("org", name);
    await assertCauses(() => post(clone()), "nocache", ["fetch"]);
  });

  it("git's probe before a large body, LFS, an archive and protocol version 0", async () => {
    await cached();
    await assertCauses(() => post(FLUSH_PKT), "passthrough", ["flush"]);
    await assertCauses(
      () =>
        stand.ask(`/org/${name}.git/info/lfs/objects/batch`, { method: "POST", body: "{}", headers: AUTH }),
      "passthrough",
      ["POST git/info/lfs/objects/batch"],
    );
    await assertCauses(
      () => stand.ask(`/org/${name}/archive/main.tar.gz`, { headers: AUTH }),
      "passthrough",
      ["GET archive/main.tar.gz"],
    );
    await assertCauses(() => post(clone(), { ...AUTH, "Git-Protocol": "version=0" }), "passthrough", [
      "POST git-upload-pack",
    ]);
  });
});

describe("requests to the code host for a fetch with other settings", { timeout: 240_000 }, () => {
  async function costs(
    settings: Parameters<typeof startStand>[0],
    headers: Record<string, string> = {},
  ): Promise<[unknown, number, number][]> {
    const stand = await startStand({ ...settings, listed: ["r"] });
    try {
      const { path } = await stand.codeHost.addRepository("org", "r");
      const fetch = command("fetch", [`want ${await git(["-C", path, "rev-parse", "main"])}`, "done"]);
      const found: [unknown, number, number][] = [];
      for (let time = 0; time < 2; time++) {
        stand.codeHost.resetCalls();
        const answer = await stand.post("org/r", fetch, headers);
        await stand.cache.settled();
        found.push([answer.headers["x-svc-cache"], stand.upstream("ls-refs"), stand.upstream("fetch")]);
      }
      return found;
    } finally {
      await stand.stop();
    }
  }

  it("grant_seconds 0 probes twice for a hit: first, and before the first byte", async () => {
    assert.deepEqual(await costs({ grantSeconds: 0 }), [
      ["miss", 1, 1],
      ["hit", 2, 0],
    ]);
  });

  it("strict_lsrefs sends no probe for a fetch without an ls-refs", async () => {
    assert.deepEqual(await costs({ strictLsRefs: true }), [
      ["rejected", 0, 0],
      ["rejected", 0, 0],
    ]);
  });

  it("a client over the limit of probes gets no request to the code host", async () => {
    assert.deepEqual(await costs({ probesPerMinute: 1 }), [
      ["miss", 1, 1],
      ["error", 0, 0],
    ]);
  });
});
