import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { git, repositories, until } from "@devplat/testkit";
import { ForwardClock } from "./forward-clock.ts";
import {
  PROXY_TOKEN,
  basic,
  command,
  contentOf,
  startStand,
  type Answer,
  type Stand,
} from "./svc-git-stand.ts";

const MAIN = "refs/heads/main";
const GRANT_SECONDS = 5;

interface Asked {
  readonly timeout?: number;
  readonly headers?: Record<string, string>;
}

const ensure = (
  stand: Stand,
  repository: string,
  refs: Readonly<Record<string, unknown>>,
  { timeout, headers }: Asked = {},
): Promise<Answer> => {
  const wait = timeout === undefined ? {} : { timeout };
  return post(stand, repository, JSON.stringify({ refs, ...wait }), headers);
};

const post = (
  stand: Stand,
  repository: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  stand.ask(`/${repository}.git/svc/ensure`, {
    method: "POST",
    body,
    headers: { "Content-Type": "application/json", ...headers },
  });

const parsed = (answer: Answer): Record<string, unknown> =>
  JSON.parse(answer.text) as Record<string, unknown>;

function assertProblem(answer: Answer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers["content-type"], "application/problem+json");
  const { detail, message } = parsed(answer);
  assert.equal(parsed(answer)["code"], code);
  assert.equal(message, detail);
}

/** A repository of its own for each test. */
describe("POST svc/ensure", { timeout: 300_000 }, () => {
  let stand: Stand;
  let name = "";
  let path = "";
  let tip = "";
  let count = 0;
  before(async () => {
    stand = await startStand({ grantSeconds: 30 });
  });
  beforeEach(async () => {
    name = `r${++count}`;
    stand.list("org", name);
    ({ path } = await stand.codeHost.addRepository("org", name, {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 2, bytes: 500_000 }),
    }));
    tip = await git(["-C", path, "rev-parse", MAIN]);
    stand.codeHost.resetCalls();
  });
  afterEach(() => stand.codeHost.clearFaults());
  after(() => stand.stop());

  it("fills an empty mirror; then fetches cost the code host nothing", async () => {
    const answer = await ensure(stand, `org/${name}`, { [MAIN]: tip });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(parsed(answer), { state: "ready" });
    assert.equal(answer.headers["x-svc-cache"], "miss");
    assert.equal(stand.upstream("fetch"), 1);
    const address = `${stand.url}/org/${name}`;
    for (const args of [["--depth=1"], []]) {
      const folder = `${name}-${args.length}`;
      const cloned = await stand.git(["clone", "-q", "--bare", ...args, address, folder]);
      assert.equal(cloned.code, 0, cloned.stderr);
    }
    assert.equal(await contentOf(stand.folder(`${name}-0`)), await contentOf(path));
    await stand.git(["init", "-q", "--bare", `${name}-id`]);
    const fetched = await stand.git(["-C", `${name}-id`, "fetch", "-q", address, tip]);
    assert.equal(fetched.code, 0, fetched.stderr);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("asks the code host for exactly these names, with the caller's credential", async () => {
    for (const other of ["other", "release"]) await git(["-C", path, "branch", other, tip]);
    stand.codeHost.addUser("ada", "ada-token", { repositories: [`org/${name}`] });
    const headers = { Authorization: basic("ada-token") };
    await ensure(stand, `org/${name}`, { [MAIN]: tip, HEAD: tip }, { headers });
    const [asked] = stand.codeHost.calls.filter((call) => call.command === "ls-refs");
    assert.equal(asked?.authorization, basic("ada-token"));
    // Two lines of a length, an id and a name, and a flush-pkt.
    const lines = ["HEAD", MAIN].map((ref) => `0000${tip} ${ref}\n`);
    assert.equal(asked.bytesOut, lines.join("").length + "0000".length);
  });

  it("is a hit when the objects are here", async () => {
    await ensure(stand, `org/${name}`, { [MAIN]: tip });
    const again = await ensure(stand, `org/${name}`, { [MAIN]: tip });
    assert.equal(again.status, 200);
    assert.equal(again.headers["x-svc-cache"], "hit");
    assert.equal(stand.upstream("fetch"), 1);
    assert.equal(await stand.metric(`svc_cache_request_total{owner="org",repo="${name}",result="hit"}`), 0);
  });

  it("brings a push as one delta on what is here", async () => {
    await ensure(stand, `org/${name}`, { [MAIN]: tip });
    await stand.codeHost.push("org", name);
    const pushed = await git(["-C", path, "rev-parse", MAIN]);
    stand.codeHost.resetCalls();
    const answer = await ensure(stand, `org/${name}`, { [MAIN]: pushed });
    assert.equal(answer.status, 200, answer.text);
    const [fetch] = stand.codeHost.calls.filter((call) => call.command === "fetch");
    assert.ok((fetch?.bytesOut ?? Infinity) < 10_000);
  });

  it("answers 409 with the object that the code host shows, or null", async () => {
    const other = "1".repeat(40);
    const refs = { [MAIN]: other, "refs/heads/none": other, HEAD: tip };
    const answer = await ensure(stand, `org/${name}`, refs);
    assertProblem(answer, 409, "ref_moved");
    assert.deepEqual(parsed(answer)["refs"], { [MAIN]: tip, "refs/heads/none": null });
    assert.equal(answer.headers["x-svc-cache"], "rejected");
    assert.equal(stand.upstream("fetch"), 0);
  });

  it("takes the commit of an annotated tag as well as the tag", async () => {
    await git(["-C", path, "-c", "user.name=a", "-c", "user.email=a@a", "tag", "-a", "v1", "-m", "v1", tip]);
    const tag = await git(["-C", path, "rev-parse", "refs/tags/v1"]);
    for (const oid of [tip, tag]) {
      const answer = await ensure(stand, `org/${name}`, { "refs/tags/v1": oid });
      assert.equal(answer.status, 200, answer.text);
    }
  });

  it("20 concurrent callers cause one fetch", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ensure(stand, `org/${name}`, { [MAIN]: tip })),
    );
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("answers 202 when the time is over, and the fetch goes on", async () => {
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch" }, { until: go.promise });
    const answer = await ensure(stand, `org/${name}`, { [MAIN]: tip }, { timeout: 0 });
    assert.equal(answer.status, 202, answer.text);
    assert.deepEqual(parsed(answer), { state: "pending" });
    assert.match(String(answer.headers["retry-after"]), /^\d+$/);
    go.resolve();
    stand.codeHost.clearFaults();
    assert.equal((await ensure(stand, `org/${name}`, { [MAIN]: tip })).status, 200);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("a caller that leaves does not stop the fetch for the rest", async () => {
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject({ command: "fetch" }, { until: go.promise });
    const outgoing = httpRequest(`${stand.url}/org/${name}.git/svc/ensure`, {
      method: "POST",
      agent: false,
      headers: { "Content-Type": "application/json" },
    });
    outgoing.on("error", () => undefined);
    outgoing.end(JSON.stringify({ refs: { [MAIN]: tip } }));
    await until(() => stand.upstream("fetch") === 1);
    const other = ensure(stand, `org/${name}`, { [MAIN]: tip });
    await until(() => stand.upstream("ls-refs") >= 2);
    const closed = new Promise((resolve) => outgoing.once("close", resolve));
    outgoing.destroy();
    await closed;
    go.resolve();
    stand.codeHost.clearFaults();
    assert.equal((await other).status, 200);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("a refused fetch is only for the caller whose credential was refused", async () => {
    stand.codeHost.addUser("ada", "ada-token");
    stand.codeHost.addUser("bob", "bob-token");
    const go = Promise.withResolvers<void>();
    stand.codeHost.inject(
      { command: "fetch", times: 1 },
      { until: go.promise, status: 403, body: "no more" },
    );
    const first = ensure(
      stand,
      `org/${name}`,
      { [MAIN]: tip },
      { headers: { Authorization: basic("ada-token") } },
    );
    await until(() => stand.upstream("fetch") === 1);
    const second = ensure(
      stand,
      `org/${name}`,
      { [MAIN]: tip },
      { headers: { Authorization: basic("bob-token") } },
    );
    await until(() => stand.upstream("ls-refs") >= 2);
    go.resolve();
    const refused = await first;
    assert.equal(refused.status, 403);
    assert.equal(refused.text, "no more");
    assert.equal((await second).status, 200);
    stand.codeHost.clearFaults();
  });

  it("takes the objects of a clone that runs, and fetches nothing itself", async () => {
    const outgoing = httpRequest(`${stand.url}/org/${name}/git-upload-pack`, {
      method: "POST",
      agent: false,
      headers: { "Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2" },
    });
    outgoing.end(command("fetch", [`want ${tip}`, "done"]));
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    response.resume();
    assert.equal((await ensure(stand, `org/${name}`, { [MAIN]: tip })).status, 200);
    assert.equal(stand.upstream("fetch"), 1);
  });

  it("replaces the mirror of another repository under the same name", async () => {
    await ensure(stand, `org/${name}`, { [MAIN]: tip });
    await stand.codeHost.remove("org", name);
    const made = await stand.codeHost.addRepository("org", name, {
      build: (dir) => repositories.linear(dir, { commits: 3 }),
    });
    const now = await git(["-C", made.path, "rev-parse", MAIN]);
    const answer = await ensure(stand, `org/${name}`, { [MAIN]: now });
    assert.equal(answer.status, 200, answer.text);
    const clone = await stand.git(["clone", "-q", "--bare", `${stand.url}/org/${name}`, `${name}-new`]);
    assert.equal(clone.code, 0, clone.stderr);
    assert.equal(await contentOf(stand.folder(`${name}-new`)), await contentOf(made.path));
  });

  it("is logged as a git request", async () => {
    await ensure(stand, `org/${name}`, { [MAIN]: tip });
    const line = stand.access.findLast(({ path: asked }) => String(asked).endsWith("/svc/ensure"));
    assert.equal(line?.["cache_state"], "miss");
    assert.equal(line?.["cache_repo"], `org/${name}`);
    assert.ok((await stand.metric('svc_cache_ensure_total{result="ready"}')) > 0);
  });

  describe("faults of the code host", () => {
    it("a code host that is down: 502 and a problem document", async () => {
      const away = await startStand({ listed: ["r"], hostUrl: "http://127.0.0.1:1" });
      try {
        assertProblem(await ensure(away, "org/r", { [MAIN]: tip }), 502, "host_unreachable");
      } finally {
        await away.stop();
      }
    });

    it("a transfer that breaks off: 502, and the next try is right", async () => {
      stand.codeHost.inject({ command: "fetch", times: 1 }, { cutAfterBytes: 100_000 });
      assertProblem(await ensure(stand, `org/${name}`, { [MAIN]: tip }), 502, "host_unreachable");
      assert.equal((await ensure(stand, `org/${name}`, { [MAIN]: tip })).status, 200);
    });

    it("a repository larger than cache.fill_max_mb: 507", async () => {
      const small = await startStand({ listed: ["big"], fillMaxMb: 1 });
      try {
        const { path: big } = await small.codeHost.addRepository("org", "big", {
          build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 3 * 2 ** 20 }),
        });
        const oid = await git(["-C", big, "rev-parse", MAIN]);
        for (let tries = 0; tries < 2; tries++) {
          assertProblem(await ensure(small, "org/big", { [MAIN]: oid }), 507, "cannot_store");
        }
        assert.equal(small.upstream("fetch"), 1);
      } finally {
        await small.stop();
      }
    });

    for (const [title, fault] of [
      [
        "an ERR line in place of refs",
        {
          status: 200,
          headers: { "Content-Type": "application/x-git-upload-pack-result" },
          body: "000fERR denied\n",
        },
      ],
      ["a page", { status: 200, headers: { "Content-Type": "text/html" }, body: "<p>Welcome" }],
      ["a redirect", { status: 301, headers: { Location: "/org/other.git/git-upload-pack" } }],
    ] as const) {
      it(`${title} does not become a success`, async () => {
        stand.codeHost.inject({ command: "ls-refs", times: 1 }, fault);
        assertProblem(await ensure(stand, `org/${name}`, { [MAIN]: tip }), 502, "host_unreachable");
      });
    }
  });

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

  describe("bad input", () => {
    const oid = "a".repeat(40);
    const body = (value: unknown): string => JSON.stringify(value);
    for (const [title, text, status, code, pointer] of [
      ["no JSON", "{", 400, "malformed_body"],
      ["not UTF-8", Buffer.from([0x22, 0xff, 0x22]), 400, "malformed_body"],
      ["no object", "[]", 400, "malformed_body"],
      ["an empty body", "", 400, "malformed_body"],
      [
        "a repeated ref",
        `{"refs":{"${MAIN}":"${oid}","${MAIN}":"${oid}"}}`,
        400,
        "repeated_field",
        `/refs/refs~1heads~1main`,
      ],
      ["an unknown field", body({ refs: { [MAIN]: oid }, wait: 1 }), 400, "unknown_fields", "/wait"],
      ["no refs", body({}), 422, "invalid_fields", "/refs"],
      ["empty refs", body({ refs: {} }), 422, "invalid_fields", "/refs"],
      ["refs in a list", body({ refs: [MAIN] }), 422, "invalid_fields", "/refs"],
      ["a short id", body({ refs: { [MAIN]: "abc123" } }), 422, "invalid_fields", "/refs/refs~1heads~1main"],
      [
        "an id in capitals",
        body({ refs: { [MAIN]: "A".repeat(40) } }),
        422,
        "invalid_fields",
        "/refs/refs~1heads~1main",
      ],
      [
        "an id that is no string",
        body({ refs: { [MAIN]: 1 } }),
        422,
        "invalid_fields",
        "/refs/refs~1heads~1main",
      ],
      [
        "ids of two lengths",
        body({ refs: { [MAIN]: oid, HEAD: "b".repeat(64) } }),
        422,
        "invalid_fields",
        "/refs",
      ],
      ["a short name", body({ refs: { main: oid } }), 422, "invalid_fields", "/refs/main"],
      [
        "a name that git forbids",
        body({ refs: { "refs/heads/a..b": oid } }),
        422,
        "invalid_fields",
        "/refs/refs~1heads~1a..b",
      ],
      [
        "a name with a line break",
        body({ refs: { "refs/heads/a\nref-prefix refs/": oid } }),
        422,
        "invalid_fields",
      ],
      [
        "a name that is too long",
        body({ refs: { [`refs/heads/${"a".repeat(1000)}`]: oid } }),
        422,
        "invalid_fields",
      ],
      ["a prototype's name", `{"refs":{"__proto__":"${oid}"}}`, 422, "invalid_fields"],
      [
        "too many refs",
        body({ refs: Object.fromEntries(Array.from({ length: 257 }, (_, at) => [`refs/heads/${at}`, oid])) }),
        422,
        "invalid_fields",
        "/refs",
      ],
      ["a timeout over 60", body({ refs: { [MAIN]: oid }, timeout: 61 }), 422, "invalid_fields", "/timeout"],
      ["a negative timeout", body({ refs: { [MAIN]: oid }, timeout: -1 }), 422, "invalid_fields", "/timeout"],
      ["a broken timeout", body({ refs: { [MAIN]: oid }, timeout: 1.5 }), 422, "invalid_fields", "/timeout"],
      ["more than 64 KiB", body({ refs: { [MAIN]: oid }, pad: "x".repeat(65_536) }), 413, "body_too_large"],
    ] as const) {
      it(`${title}: ${status}, and the code host is not asked`, async () => {
        const answer = await post(stand, `org/${name}`, text);
        assertProblem(answer, status, code);
        const errors = (parsed(answer)["errors"] ?? []) as readonly { pointer: string }[];
        if (pointer !== undefined)
          assert.ok(
            errors.some((each) => each.pointer === pointer),
            answer.text,
          );
        assert.equal(stand.codeHost.calls.length, 0);
      });
    }

    it("another media type: 415", async () => {
      const answer = await post(stand, `org/${name}`, "{}", { "Content-Type": "text/plain" });
      assertProblem(answer, 415, "not_json");
    });

    it("GET: 405", async () => {
      const answer = await stand.ask(`/org/${name}/svc/ensure`);
      assertProblem(answer, 405, "method_not_allowed");
      assert.equal(answer.headers["allow"], "POST");
    });

    it("the cache is off: 404", async () => {
      const off = await startStand({ cacheEnabled: false });
      try {
        assertProblem(await ensure(off, "org/r", { [MAIN]: oid }), 404, "no_such_path");
      } finally {
        await off.stop();
      }
    });
  });

  it("a repository with SHA-256 object ids", async () => {
    const made = await stand.codeHost.addRepository("org", "sha256", {
      build: async (dir) => {
        await git(["init", "-q", "--bare", "--object-format=sha256", "-b", "main", dir]);
        const tree = await git(["-C", dir, "mktree"]);
        const commit = await git([
          "-C",
          dir,
          "-c",
          "user.name=a",
          "-c",
          "user.email=a@a",
          "commit-tree",
          "-m",
          "one",
          tree,
        ]);
        await git(["-C", dir, "update-ref", MAIN, commit]);
      },
    });
    stand.list("org", "sha256");
    const oid = await git(["-C", made.path, "rev-parse", MAIN]);
    const answer = await ensure(stand, "org/sha256", { [MAIN]: oid });
    assert.equal(answer.status, 200, answer.text);
  });
});
