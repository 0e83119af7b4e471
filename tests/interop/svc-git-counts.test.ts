import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, beforeEach, describe, it } from "node:test";
import { FLUSH_PKT, encodeCapabilityAdvertisement } from "@devplat/git-protocol";
import { git, repositories } from "@devplat/testkit";
import { basic, command, startStand, type Answer, type Stand } from "./svc-git-stand.ts";

const AUTH = { Authorization: basic("ada-token") };
const LS_REFS = command("ls-refs", ["ref-prefix refs/heads/"]);

/** Tests which requests svc_cache_request_total counts, and with which outcome (spec/svc.md section 2.6). */
describe("one clone is one count", { timeout: 240_000 }, () => {
  let stand: Stand;
  let name: string;
  let path: string;
  let fetch: Buffer;
  let count = 0;
  before(async () => {
    stand = await startStand({ maxUpstreamFetches: 1, queueSeconds: 30 });
    stand.codeHost.addUser("ada", "ada-token");
  });
  after(() => stand.stop());
  beforeEach(async () => {
    name = `r${++count}`;
    ({ path } = await stand.codeHost.addRepository("org", name, { private: true }));
    stand.list("org", name);
    fetch = command("fetch", [`want ${await git(["-C", path, "rev-parse", "main"])}`, "done"]);
    stand.codeHost.resetCalls();
    stand.access.length = 0;
  });

  const RESULTS = ["hit", "miss", "rejected", "error", "passthrough", "bypass", "nocache"] as const;
  /** Every count of the repository, without those that are 0. */
  const counts = async (repo = name): Promise<Record<string, number>> => {
    const found: Record<string, number> = {};
    for (const result of RESULTS) {
      const value = await stand.metric(
        `svc_cache_request_total{owner="org",repo="${repo}",result="${result}"}`,
      );
      if (value > 0) found[result] = value;
    }
    return found;
  };
  const states = (): unknown[] => stand.access.map((line) => line["cache_state"]);
  /** Sends a body and leaves when `moment` comes. */
  const leave = async (body: Buffer, moment: () => boolean): Promise<void> => {
    const { port } = new URL(stand.url);
    const outgoing = request({
      port,
      host: "127.0.0.1",
      method: "POST",
      path: `/org/${name}/git-upload-pack`,
      headers: {
        ...AUTH,
        "Content-Type": "application/x-git-upload-pack-request",
        "Git-Protocol": "version=2",
      },
      agent: false,
    });
    outgoing.on("error", () => undefined);
    outgoing.end(body);
    await until(moment);
    outgoing.destroy();
  };
  const until = async (done: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 10));
  };

  it("ls-refs and a fetch: one miss, then one hit [svc 5.2]", async () => {
    for (const result of ["miss", "hit"]) {
      await stand.post(`org/${name}`, LS_REFS, AUTH);
      const answer = await stand.post(`org/${name}`, fetch, AUTH);
      assert.equal(answer.headers["x-svc-cache"], result);
    }
    assert.deepEqual(await counts(), { miss: 1, hit: 1 });
  });

  for (const status of [401, 403, 404]) {
    it(`an ls-refs refused with ${status} counts once, as rejected, also in its header [svc 1.4]`, async () => {
      stand.codeHost.inject({ path: new RegExp(name), command: "ls-refs" }, { status });
      const answer = await stand.post(`org/${name}`, LS_REFS, AUTH);
      stand.codeHost.clearFaults();
      assert.equal(answer.status, status);
      assert.equal(answer.headers["x-svc-cache"], "rejected");
      assert.deepEqual(await counts(), { rejected: 1 });
    });

    it(`a fetch whose probe is refused with ${status} counts once, as rejected`, async () => {
      stand.codeHost.inject({ path: new RegExp(name), command: "ls-refs" }, { status });
      const answer = await stand.post(`org/${name}`, fetch, AUTH);
      stand.codeHost.clearFaults();
      assert.equal(answer.headers["x-svc-cache"], "rejected");
      assert.deepEqual(await counts(), { rejected: 1 });
    });
  }

  it("an ls-refs with another failure is not counted; log and response say error [svc 1.4]", async () => {
    stand.codeHost.inject({ path: new RegExp(name), command: "ls-refs", times: 1 }, { status: 500 });
    assert.equal((await stand.post(`org/${name}`, LS_REFS, AUTH)).headers["x-svc-cache"], "error");
    stand.list("org", name, { timeoutSeconds: 1 });
    stand.codeHost.inject({ path: new RegExp(name), command: "ls-refs", times: 1 }, { hang: true });
    const late = await stand.post(`org/${name}`, LS_REFS, AUTH);
    assert.equal(late.status, 504);
    assert.equal(late.headers["x-svc-cache"], "error");
    assert.deepEqual(await counts(), {});
    assert.deepEqual(states(), ["error", "error"]);
  });

  it("a fetch that gets 500 from the code host is an error, also in its header", async () => {
    await stand.post(`org/${name}`, LS_REFS, AUTH);
    stand.codeHost.inject({ path: new RegExp(name), command: "fetch", times: 1 }, { status: 500 });
    assert.equal((await stand.post(`org/${name}`, fetch, AUTH)).headers["x-svc-cache"], "error");
    assert.deepEqual(await counts(), { error: 1 });
  });

  it("a client that leaves during its probe counts as a miss", async () => {
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ path: new RegExp(name), command: "ls-refs", times: 1 }, { until: go.promise });
    await leave(fetch, () => stand.upstream("ls-refs") > 0);
    go.resolve();
    await until(async () => Object.keys(await counts()).length > 0);
    stand.codeHost.clearFaults();
    assert.deepEqual(await counts(), { miss: 1 });
  });

  it("a client that leaves while it waits for its turn counts as a miss [svc 5.4]", async () => {
    const other = `${name}-busy`;
    const busy = await stand.codeHost.addRepository("org", other);
    stand.list("org", other);
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ path: new RegExp(other), command: "fetch", times: 1 }, { until: go.promise });
    const want = await git(["-C", busy.path, "rev-parse", "main"]);
    const first = stand.post(`org/${other}`, command("fetch", [`want ${want}`, "done"]));
    await until(() => stand.upstream("fetch") === 1);
    await stand.post(`org/${name}`, LS_REFS, AUTH);
    const asked = stand.codeHost.calls.length;
    const planned = stand.planned();
    await leave(fetch, () => stand.planned() > planned);
    await until(async () => Object.keys(await counts()).length > 0);
    assert.equal(stand.codeHost.calls.length, asked, "it had no turn yet");
    assert.deepEqual(await counts(), { miss: 1 });
    go.resolve();
    await first;
  });

  it("a single flush-pkt, git's probe, is not counted in any protocol version [svc 5.3]", async () => {
    await stand.post(`org/${name}`, FLUSH_PKT, AUTH);
    await stand.post(`org/${name}`, FLUSH_PKT, { ...AUTH, "Git-Protocol": "version=0" });
    stand.list("org", name, { enabled: false });
    await stand.post(`org/${name}`, FLUSH_PKT, AUTH);
    assert.equal(stand.codeHost.calls.length, 3);
    assert.deepEqual(await counts(), {});
    assert.deepEqual(states(), ["passthrough", "passthrough", ""]);
  });

  it("a flush-pkt with a fetch after it is forwarded, and counts once as passthrough", async () => {
    const answer = await stand.post(`org/${name}`, Buffer.concat([FLUSH_PKT, fetch]), AUTH);
    assert.equal(answer.headers["x-svc-cache"], "passthrough");
    assert.deepEqual(await counts(), { passthrough: 1 });
  });

  it("a 401 on info/refs and pushes are not counted [svc 5.7]", async () => {
    assert.equal((await stand.ask(`/org/${name}/info/refs?service=git-upload-pack`)).status, 401);
    await stand.ask(`/org/${name}/git-receive-pack`, { method: "POST", body: FLUSH_PKT, headers: AUTH });
    await stand.ask(`/org/${name}/info/refs?service=git-receive-pack`, { headers: AUTH });
    assert.deepEqual(await counts(), {});
  });
});

describe("a request that cannot be forwarded", { timeout: 240_000 }, () => {
  it("counts like one that can: nocache, bypass, error [svc 5.6]", async () => {
    const stand = await startStand({ hostUrl: "http://127.0.0.1:1", listed: ["cached"] });
    try {
      stand.list("org", "off", { enabled: false });
      const body = command("fetch", ["done"]);
      for (const name of ["free", "off", "cached"]) {
        assert.equal((await stand.post(`org/${name}`, body)).status, 502, name);
        assert.equal((await stand.post(`org/${name}`, body, { "Git-Protocol": "" })).status, 502, name);
        assert.equal((await stand.ask(`/org/${name}/info/refs`)).status, 502, name);
      }
      const count = (labels: string): Promise<number> => stand.metric(`svc_cache_request_total{${labels}}`);
      assert.equal(await count('owner="",repo="",result="nocache"'), 3);
      assert.equal(await count('owner="org",repo="off",result="bypass"'), 3);
      assert.equal(await count('owner="org",repo="cached",result="error"'), 3);
    } finally {
      await stand.stop();
    }
  });
});

describe("a feature that the code host does not offer", { timeout: 240_000 }, () => {
  it("is forwarded, even if the service could build the response [svc 2.9]", async () => {
    const stand = await startStand({ listed: ["r"] });
    try {
      const { path } = await stand.codeHost.addRepository("org", "r", {
        build: (dir) => repositories.linear(dir),
      });
      await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/r`, "first"]);
      await stand.cache.settled();
      const tip = await git(["-C", path, "rev-parse", "main"]);
      const post = (...args: string[]): Promise<Answer> =>
        stand.post("org/r", command("fetch", [`want ${tip}`, ...args, "done"]));
      assert.equal((await post("filter blob:limit=1")).headers["x-svc-cache"], "hit");
      // The next advertisement that passes says so.
      const advertise = async (fetch: string): Promise<unknown> => {
        const body = encodeCapabilityAdvertisement({
          service: "git-upload-pack",
          capabilities: new Map([["fetch", fetch]]),
        });
        const headers = { "Content-Type": "application/x-git-upload-pack-advertisement" };
        stand.codeHost.inject({ path: /info\/refs/, times: 1 }, { status: 200, headers, body });
        return stand.ask("/org/r/info/refs?service=git-upload-pack", {
          headers: { "Git-Protocol": "version=2" },
        });
      };
      await advertise("shallow");
      stand.codeHost.resetCalls();
      assert.equal((await post("filter blob:limit=2")).headers["x-svc-cache"], "miss");
      assert.equal((await post("filter blob:limit=1")).headers["x-svc-cache"], "miss");
      assert.equal((await post("wait-for-done")).headers["x-svc-cache"], "miss");
      assert.equal((await post("deepen 1")).headers["x-svc-cache"], "hit");
      assert.equal((await post("ofs-delta")).headers["x-svc-cache"], "hit");
      assert.equal(stand.upstream("fetch"), 3);
      await advertise("filter");
      assert.equal((await post("deepen 2")).headers["x-svc-cache"], "miss");
      assert.equal((await post("filter blob:limit=2")).headers["x-svc-cache"], "hit");
    } finally {
      await stand.stop();
    }
  });

  it("is requested once where it is not known", async () => {
    const stand = await startStand({ listed: ["r"] });
    try {
      const { path } = await stand.codeHost.addRepository("org", "r");
      const tip = await git(["-C", path, "rev-parse", "main"]);
      for (const depth of [1, 2, 3]) {
        await stand.post("org/r", command("fetch", [`want ${tip}`, `deepen ${depth}`, "done"]));
      }
      const asked = stand.codeHost.calls.filter((call) => call.path.endsWith("/info/refs"));
      assert.equal(asked.length, 1);
    } finally {
      await stand.stop();
    }
  });
});

describe("a check-out by id", { timeout: 240_000 }, () => {
  it("of a branch that no recent ls-refs showed requests refs once, and is a hit", async () => {
    const stand = await startStand({ listed: ["r"], grantSeconds: 0, tipsSeconds: 2 });
    try {
      const { path } = await stand.codeHost.addRepository("org", "r", {
        build: (dir) => repositories.linear(dir),
      });
      await git(["-C", path, "branch", "dev", "main"]);
      await repositories.append(path, { branch: "dev", commits: 2 });
      await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/r`, "first"]);
      await stand.cache.settled();
      await new Promise((resolve) => setTimeout(resolve, 2100));
      stand.codeHost.resetCalls();
      const below = await git(["-C", path, "rev-parse", "refs/heads/dev~1"]);
      const answer = await stand.post("org/r", command("fetch", [`want ${below}`, "deepen 1", "done"]));
      assert.equal(answer.headers["x-svc-cache"], "hit");
      assert.equal(stand.upstream("fetch"), 0);
      // HEAD first, then branches and tags, and HEAD once more before the first byte: grant_seconds is 0.
      assert.equal(stand.upstream("ls-refs"), 3);
    } finally {
      await stand.stop();
    }
  });

  it("of a repository whose HEAD names nothing is a hit the second time", async () => {
    const stand = await startStand({ listed: ["r"], grantSeconds: 0 });
    try {
      const { path } = await stand.codeHost.addRepository("org", "r");
      await git(["-C", path, "symbolic-ref", "HEAD", "refs/heads/nowhere"]);
      const fetch = command("fetch", [`want ${await git(["-C", path, "rev-parse", "main"])}`, "done"]);
      const states: unknown[] = [];
      for (let time = 0; time < 3; time++) {
        states.push((await stand.post("org/r", fetch)).headers["x-svc-cache"]);
        await stand.cache.settled();
      }
      assert.deepEqual(states, ["miss", "hit", "hit"]);
    } finally {
      await stand.stop();
    }
  });

  it("of an object in no branch is forwarded, and refs are requested only at times", async () => {
    const stand = await startStand({ listed: ["r"] });
    try {
      const { path } = await stand.codeHost.addRepository("org", "r", {
        build: (dir) => repositories.linear(dir),
      });
      await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/r`, "first"]);
      await stand.cache.settled();
      const dropped = await git(["-C", path, "rev-parse", "main"]);
      await git(["-C", path, "update-ref", "refs/heads/main", "main~2"]);
      await git(["-C", path, "update-ref", "refs/pull/1/head", dropped]);
      await stand.post("org/r", command("ls-refs", ["ref-prefix refs/heads/"]));
      stand.codeHost.resetCalls();
      for (const depth of [1, 2, 3]) {
        const fetch = command("fetch", [`want ${dropped}`, `deepen ${depth}`, "done"]);
        assert.equal((await stand.post("org/r", fetch)).headers["x-svc-cache"], "miss");
      }
      assert.equal(stand.upstream("fetch"), 3);
      assert.equal(stand.upstream("ls-refs"), 1);
    } finally {
      await stand.stop();
    }
  });
});
