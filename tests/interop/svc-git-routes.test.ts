import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { git, gitEnvironment, repositories } from "@devplat/testkit";
import { MAX_UPLOADS_PER_CLIENT } from "../../apps/svc/src/git/upload-limit.ts";
import { MAX_CONNECTIONS } from "../../apps/svc/src/upstream/upstream.ts";
import {
  PROXY_TOKEN,
  basic,
  command,
  contentOf,
  rawExchange,
  startStand,
  type Stand,
} from "./svc-git-stand.ts";

describe("requests that pass through", () => {
  let stand: Stand;
  let url = "";
  const series = (result: string): string =>
    `svc_cache_request_total{owner="org",repo="r",result="${result}"}`;
  before(async () => {
    stand = await startStand();
    await stand.codeHost.addRepository("org", "r", { build: (dir) => repositories.tags(dir) });
    await stand.codeHost.addRepository("org", "unlisted");
    stand.codeHost.addUser("alice", "alice-token");
    stand.list("org", "r");
    url = `${stand.url}/org/r`;
  });
  after(() => stand.stop());

  for (const version of ["0", "1"]) {
    it(`a clone by v${version} equals a direct one, and counts once as passthrough [svc 5.5]`, async () => {
      const earlier = await stand.metric(series("passthrough"));
      const options = ["-c", `protocol.version=${version}`, "clone", "-q", "--mirror"];
      assert.equal((await stand.git([...options, url, `v${version}`])).code, 0);
      assert.equal((await stand.git([...options, `${stand.codeHost.url}/org/r`, `d${version}`])).code, 0);
      assert.equal(
        await contentOf(stand.folder(`v${version}`)),
        await contentOf(stand.folder(`d${version}`)),
      );
      assert.equal((await stand.metric(series("passthrough"))) - earlier, 1);
      assert.equal(stand.access.at(-1)?.["cache_state"], "passthrough");
      assert.equal(stand.access.at(-1)?.["cache_repo"], "org/r");
    });
  }

  it("a clone over dumb HTTP works, outcome passthrough, counted once [svc 5.5 10.3]", async () => {
    const earlier = await stand.metric(series("passthrough"));
    const env = { ...gitEnvironment(), GIT_SMART_HTTP: "0" };
    const result = await stand.git(["clone", "-q", "--mirror", url, "dumb"], env);
    assert.equal(result.code, 0, result.stderr);
    assert.equal((await stand.metric(series("passthrough"))) - earlier, 1);
  });

  it("a push reaches the code host, and is not counted", async () => {
    const earlier = await stand.metrics.registry.getSingleMetricAsString("svc_cache_request_total");
    await git(["clone", "-q", stand.codeHost.url + "/org/r", stand.folder("work")]);
    await writeFile(join(stand.folder("work"), "big.bin"), Buffer.alloc(3_000_000, "svc"));
    await git(["-C", stand.folder("work"), "add", "."]);
    await git(["-C", stand.folder("work"), "commit", "-q", "-m", "Add"]);
    const remote = url.replace("//", "//user:alice-token@");
    const result = await stand.git(["-C", "work", "push", "-q", remote, "HEAD:refs/heads/pushed"]);
    assert.equal(result.code, 0, result.stderr);
    assert.equal(
      await git(["ls-remote", `${stand.codeHost.url}/org/r`, "refs/heads/pushed"]),
      `${await git(["-C", stand.folder("work"), "rev-parse", "HEAD"])}\trefs/heads/pushed`,
    );
    assert.equal(await stand.metrics.registry.getSingleMetricAsString("svc_cache_request_total"), earlier);
    const refused = await stand.git(["-C", "work", "push", "-q", url, "HEAD:refs/heads/x"]);
    assert.match(refused.stderr, /Authentication failed|could not read Username|terminal prompts disabled/);
  });

  it("an unlisted repository passes through as nocache, counted after the host's 200", async () => {
    const result = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/unlisted.git`, "unlisted"]);
    assert.equal(result.code, 0, result.stderr);
    const labels = `owner="org",repo="unlisted",result="nocache"`;
    assert.equal(await stand.metric(`svc_cache_request_total{${labels}}`), 1);
    assert.equal(stand.access.at(-1)?.["cache_state"], "");
    assert.equal(stand.access.at(-1)?.["cache_repo"], "");
    await stand.post("org/none", command("fetch", ["done"]));
    assert.equal(await stand.metric(`svc_cache_request_total{owner="",repo="",result="nocache"}`), 1);
  });

  it("a disabled repository passes through, outcome bypass", async () => {
    stand.list("org", "unlisted", { enabled: false });
    const result = await stand.git(["clone", "-q", "--mirror", `${stand.url}/org/unlisted`, "disabled"]);
    assert.equal(result.code, 0, result.stderr);
    stand.unlist("org", "unlisted");
    const labels = `owner="org",repo="unlisted",result="bypass"`;
    assert.equal(await stand.metric(`svc_cache_request_total{${labels}}`), 1);
  });

  it("gzip bodies are inflated for the cache, and forwarded as they are otherwise", async () => {
    const body = gzipSync(command("ls-refs", ["ref-prefix refs/heads/"]));
    const cached = await stand.post("org/r", body, { "Content-Encoding": "gzip" });
    assert.match(cached.text, /refs\/heads\/main/);
    const passed = await stand.post("org/unlisted", body, { "Content-Encoding": "gzip" });
    assert.match(passed.text, /refs\/heads\/main/);
    assert.equal(stand.codeHost.calls.at(-1)?.headers["content-encoding"], "gzip");
  });

  it("Expect: 100-continue is answered here, after admission, and never forwarded", async () => {
    const body = command("ls-refs", ["ref-prefix refs/heads/"]).toString("latin1");
    const head = (extra: string): string =>
      `POST /org/r/git-upload-pack HTTP/1.1\r\nHost: 127.0.0.1\r\nGit-Protocol: version=2\r\n` +
      `Content-Type: application/x-git-upload-pack-request\r\nContent-Length: ${body.length}\r\n` +
      `Connection: close\r\nExpect: 100-continue\r\n${extra}\r\n`;
    const good = await rawExchange(stand.url, head("") + body, 3000);
    assert.match(good, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
    assert.equal(stand.codeHost.calls.at(-1)?.headers.expect, undefined);
    const bad = await rawExchange(stand.url, head(`Authorization: ${basic("svcx_bad")}\r\n`), 3000);
    assert.match(bad, /^HTTP\/1\.1 401 /);
  });

  it("a large chunked body after a flush-pkt works: many refs over a small postBuffer", async () => {
    await stand.codeHost.addRepository("org", "many", {
      build: (dir) => repositories.manyRefs(dir, { refs: 6000 }),
    });
    stand.list("org", "many");
    stand.codeHost.resetCalls();
    const options = ["-c", "http.postBuffer=65536", "clone", "-q", "--mirror"];
    for (const folder of ["many-1", "many-2"]) {
      const result = await stand.git([...options, `${stand.url}/org/many`, folder]);
      assert.equal(result.code, 0, result.stderr);
    }
    assert.equal(await contentOf(stand.folder("many-1")), await contentOf(stand.folder("many-2")));
    assert.equal(stand.upstream("fetch"), 1);
  });

  const same = async (name: string, fetch: (folder: string) => Promise<void>): Promise<void> => {
    let hits = 0;
    for (const n of [1, 2]) {
      hits = await stand.metric(series("hit"));
      await fetch(`${name}-${n}`);
    }
    const logs = await Promise.all(
      [1, 2].map((n) => git(["-C", stand.folder(`${name}-${n}`), "log", "--all", "--format=%H"])),
    );
    assert.equal(logs[0], logs[1]);
    assert.equal((await stand.metric(series("hit"))) - hits, 1, "the second one is a hit");
  };

  // By id: git before 2.41 cannot read its own server's answer to a shallow fetch where `want-ref` is offered.
  for (const [name, option] of [
    ["depth", "--depth=2"],
    // With its time: git takes a missing one from the clock.
    ["since", "--shallow-since=2001-01-01T00:00:00Z"],
    ["exclude", "--shallow-exclude=v0"],
  ] as const) {
    it(`a shallow fetch by id with ${option} is a hit the second time`, async () => {
      const oid = (await git(["ls-remote", url, "HEAD"])).slice(0, 40);
      await same(name, async (folder) => {
        await git(["init", "-q", "--bare", stand.folder(folder)]);
        const result = await stand.git([
          "-C",
          folder,
          "fetch",
          "-q",
          "--no-tags",
          option,
          url,
          `${oid}:refs/heads/x`,
        ]);
        assert.equal(result.code, 0, result.stderr);
      });
    });
  }

  for (const [name, option] of [
    ["blobless", "--filter=blob:none"],
    ["single", "--single-branch"],
  ] as const) {
    it(`a clone with ${option} is a hit the second time, with lazy fetches and want-ref`, async () => {
      await same(name, async (folder) => {
        const result = await stand.git(["clone", "-q", "--no-checkout", option, url, folder]);
        assert.equal(result.code, 0, result.stderr);
      });
      const checkout = await stand.git(["-C", `${name}-2`, "checkout", "-q", "main"]);
      assert.equal(checkout.code, 0, checkout.stderr);
    });
  }
});

describe("what crosses, and what does not", () => {
  let stand: Stand;
  before(async () => {
    stand = await startStand({ managementHost: "svc.example" });
    await stand.codeHost.addRepository("org", "r");
    await stand.codeHost.addRepository("cli", "cli");
    stand.list("org", "r");
  });
  after(() => stand.stop());

  it("cookies and unknown headers stay; the user agent and a valid request id pass", async () => {
    stand.codeHost.inject(
      { path: /info\/refs/, times: 1 },
      { headers: { "set-cookie": "s=1", "x-powered-by": "x" } },
    );
    const answer = await stand.ask("/org/r/info/refs?service=git-upload-pack&x=1", {
      headers: {
        Cookie: "session=secret",
        "X-Forwarded-For": "10.0.0.1",
        "User-Agent": "git/2.99",
        "X-Request-Id": "trace-12345678",
      },
    });
    const call = stand.codeHost.calls.at(-1);
    assert.equal(call?.headers.cookie, undefined);
    assert.equal(call?.headers["x-forwarded-for"], undefined);
    assert.equal(call?.headers["user-agent"], "git/2.99");
    assert.equal(call?.headers["accept-encoding"], "identity");
    assert.equal(call?.query, "service=git-upload-pack");
    assert.equal(answer.headers["set-cookie"], undefined);
    assert.equal(answer.headers["x-powered-by"], undefined);
    assert.equal(answer.headers["x-request-id"], "trace-12345678");
    assert.equal(answer.headers["content-security-policy"], "sandbox; default-src 'none'");
    assert.equal(answer.headers["x-content-type-options"], "nosniff");
    assert.match(String(answer.headers["server-timing"]), /admission;dur=/);
    const other = await stand.ask("/org/r/info/refs", { headers: { "X-Request-Id": "a b" } });
    assert.match(String(other.headers["x-request-id"]), /^[0-9a-f-]{36}$/);
  });

  it("a page of the code host becomes plain text with its status and challenge", async () => {
    stand.codeHost.inject(
      { path: /info\/refs/, times: 1 },
      {
        status: 401,
        headers: { "content-type": "text/html; charset=utf-8", "www-authenticate": 'Basic realm="x"' },
        body: "<script>alert(1)</script>",
      },
    );
    const answer = await stand.ask("/org/r/info/refs?service=git-upload-pack");
    assert.equal(answer.status, 401);
    assert.equal(answer.headers["content-type"], "text/plain; charset=utf-8");
    assert.equal(answer.headers["www-authenticate"], 'Basic realm="x"');
    assert.doesNotMatch(answer.text, /script/);
  });

  it("a redirect to another host is 502 on a git route, and relayed on an archive", async () => {
    const fault = { status: 302, headers: { location: "https://elsewhere.example/x?token=1" }, body: "" };
    stand.codeHost.inject({ times: 2 }, fault);
    const refs = await stand.ask("/org/r/info/refs?service=git-upload-pack");
    assert.equal(refs.status, 502);
    assert.match(refs.text, /elsewhere\.example/);
    assert.doesNotMatch(refs.text, /token/);
    const archive = await stand.ask("/org/r/archive/main.tar.gz");
    assert.equal(archive.headers.location, "https://elsewhere.example/x?token=1");
    stand.codeHost.inject(
      { times: 1 },
      { status: 301, headers: { location: "//evil.example//x" }, body: "" },
    );
    assert.equal((await stand.ask("/org/r/info/refs?service=git-upload-pack")).status, 502);
  });

  it("one of our tokens outside of Authorization is never forwarded, and is not logged", async () => {
    stand.codeHost.resetCalls();
    const places: [string, Record<string, string>][] = [
      ["/org/r/archive/main.zip?access_token=svcx_planted", {}],
      ["/org/r/archive/main.zip?access_token=svc%78_planted", {}],
      ["/some/page?a=%ZZ&access_token=%73vcx_planted", { Host: "code.example" }],
      ["/org/svcx_planted/info/refs", {}],
      ["/org/r/info/refs?service=git-upload-pack", { "User-Agent": "curl svca_planted" }],
    ];
    for (const [path, headers] of places) {
      assert.equal((await stand.ask(path, { headers })).status, 400, path);
    }
    assert.equal(stand.codeHost.calls.length, 0);
    assert.doesNotMatch(JSON.stringify([stand.access, stand.log]), /planted/);
  });

  it("a proxy token is swapped; without a classified action it is refused", async () => {
    stand.codeHost.resetCalls();
    const headers = { Authorization: basic(PROXY_TOKEN) };
    await stand.ask("/org/r/info/refs?service=git-upload-pack", { headers });
    assert.equal(
      stand.codeHost.calls[0]?.authorization,
      `Basic ${Buffer.from("x-access-token:stored-secret").toString("base64")}`,
    );
    assert.equal(stand.access.at(-1)?.["principal"], "proxy_token:alice:t1");
    const lfs = await stand.ask("/org/r/info/lfs/unknown", { method: "POST", headers, body: "{}" });
    assert.equal(lfs.status, 401);
    assert.equal(stand.actions.at(-1), undefined);
    assert.doesNotMatch(JSON.stringify([stand.access, stand.log]), /stored-secret|test-only-token/);
  });

  it("levels: fetching is contents:read, pushing contents:write", async () => {
    for (const [path, level] of [
      ["/Org/R.git/info/refs?service=git-upload-pack", "read"],
      ["/Org/R.git/info/refs?service=git-receive-pack", "write"],
      ["/Org/R.git/HEAD", "read"],
      ["/Org/R.git/archive/main.zip", "read"],
    ] as const) {
      await stand.ask(path);
      assert.deepEqual(stand.actions.at(-1), { owner: "Org", name: "R", resource: "contents", level }, path);
    }
  });

  it("a revision with a colon may be a fork's branch, and no proxy token opens it", async () => {
    for (const [path, opens] of [
      ["/org/r/archive/other:main.zip", false],
      ["/org/r/archive/refs/heads/other%3Amain.tar.gz", false],
      ["/org/r/raw/other:main/README.md", false],
      ["/org/r/raw/main/a:b.md", true],
    ] as const) {
      await stand.ask(path, { headers: { Host: "code.example" } });
      assert.equal(stand.actions.at(-1) !== undefined, opens, path);
    }
  });

  it("virtual hosts: git on management, its own pages, management names, other hosts", async () => {
    assert.equal((await stand.ask("/admin")).headers["x-management"], "yes");
    assert.equal((await stand.ask("/api/repo/archive/x")).headers["x-management"], "yes");
    assert.equal((await stand.ask("/org/r/raw/main/README.md")).headers["x-management"], "yes");
    assert.equal((await stand.ask("/cli/cli/info/refs?service=git-upload-pack")).status, 200);
    const as = (host: string, path: string): ReturnType<Stand["ask"]> =>
      stand.ask(path, { headers: { Host: host } });
    assert.equal((await as("code.example", "/org/r.git/info/refs?service=git-upload-pack")).status, 200);
    assert.equal((await as("code.example", "/admin")).headers["x-management"], undefined);
    assert.equal((await as("stranger.example", "/admin")).status, 421);
    assert.equal((await as("svc.example", "/admin")).headers["x-management"], "yes");
    assert.equal((await as("api.code.example", "/user")).status, 404);
  });
});

describe("clients that send a head and no body", () => {
  it("keep nobody else from asking, and one address gets 429 for more than its share", async () => {
    const stand = await startStand();
    const sockets: Socket[] = [];
    try {
      await stand.codeHost.addRepository("org", "r");
      stand.list("org", "r", { timeoutSeconds: 5 });
      stand.codeHost.inject({ path: /stalled/ }, { hang: true });
      let refused = 0;
      const told = Promise.withResolvers<void>();
      for (let n = 0; n < MAX_CONNECTIONS + 2; n++) {
        const socket = connect(Number(new URL(stand.url).port), "127.0.0.1");
        socket.on("error", () => undefined);
        socket.once("data", (bytes: Buffer) => {
          assert.match(bytes.toString("latin1"), /^HTTP\/1\.1 429 [^]*retry-after: 5/i);
          if (++refused === MAX_CONNECTIONS + 2 - MAX_UPLOADS_PER_CLIENT) told.resolve();
        });
        socket.write("POST /org/stalled/git-upload-pack HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
        sockets.push(socket);
      }
      assert.equal((await stand.post("org/r", command("ls-refs", []))).status, 200);
      assert.equal((await stand.ask("/org/r/info/refs?service=git-upload-pack")).status, 200);
      await told.promise;
    } finally {
      for (const socket of sockets) socket.destroy();
      await stand.stop();
    }
  });
});
