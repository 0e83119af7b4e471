import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { STORED, startApiStand, type ApiStand } from "./svc-api-stand.ts";

let stand: ApiStand;
let reader: string;
let writer: string;
before(async () => {
  stand = await startApiStand();
  reader = await stand.mint("issues:read");
  writer = await stand.mint("issues:write");
});
after(async () => stand.stop());

/** Sends a body with any method, which `fetch` does not. */
async function askWithBody(
  token: string,
  method: string,
  path: string,
  type: string | undefined,
  body: string,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(stand.svc.url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        "content-length": Buffer.byteLength(body),
        ...(type === undefined ? {} : { "content-type": type }),
      },
    });
    outgoing.on("response", (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const FORM = "application/x-www-form-urlencoded";
const SEARCH = "/api/v3/search/issues?q=repo:acme/widgets+is:issue";

describe("a limited token is authorized by the request that the code host gets", () => {
  it("a GET with a body, whose parameters a server may prefer, is refused", async () => {
    stand.codeHost.resetCalls();
    for (const type of [FORM, "application/json", undefined]) {
      assert.equal(await askWithBody(reader, "GET", SEARCH, type, "q=everything"), 403);
    }
    assert.equal(stand.codeHost.calls.length, 0);
    assert.equal((await stand.ask(reader, "GET", SEARCH)).status, 200);
  });

  it("a query is rebuilt: a semicolon, which some servers split at, separates nothing", async () => {
    stand.codeHost.resetCalls();
    const answer = await stand.ask(reader, "GET", `${SEARCH}+x;q=everything`);
    assert.equal(answer.status, 200);
    const [call] = stand.codeHost.calls;
    assert.match(String(call?.query), /^q=[^;&]*$/);
  });

  it("_method in the query is refused, and a form travels as JSON", async () => {
    const path = "/api/v3/repos/acme/widgets/issues";
    stand.codeHost.resetCalls();
    assert.equal(await askWithBody(writer, "POST", `${path}?_method=PUT`, undefined, "{}"), 403);
    assert.equal(stand.codeHost.calls.length, 0);
    for (const type of [FORM, "multipart/form-data; boundary=x", undefined]) {
      stand.codeHost.resetCalls();
      assert.equal(await askWithBody(writer, "POST", path, type, `{"title":"x"}`), 201);
      assert.equal(stand.codeHost.calls[0]?.headers["content-type"], "application/json");
    }
  });

  it("parameters that name another caller are refused", async () => {
    stand.codeHost.resetCalls();
    for (const name of ["sudo", "token", "access_token"]) {
      assert.equal((await stand.ask(reader, "GET", `/api/v3/user?${name}=mallory`)).status, 403, name);
    }
    assert.equal(stand.codeHost.calls.length, 0);
  });

  it("a number behind an encoded slash is refused", async () => {
    stand.codeHost.resetCalls();
    assert.equal((await stand.ask(reader, "GET", "/api/v3/repositories%2F1/issues")).status, 403);
    assert.equal(stand.codeHost.calls.length, 0);
  });
});

describe("a request that has two readings", () => {
  const raw = async (...lines: string[]): Promise<string> => {
    const socket = connect(Number(new URL(stand.svc.url).port), "127.0.0.1");
    socket.write(`${lines.join("\r\n")}\r\nConnection: close\r\n\r\n`);
    let answer = "";
    for await (const chunk of socket.setEncoding("latin1")) answer += String(chunk);
    return answer.split("\r\n", 1)[0] ?? "";
  };
  const GET = "GET /api/v3/repos/acme/widgets HTTP/1.1";

  it("two Host headers, two credentials or a foreign target are 400, not forwarded", async () => {
    const bearer = `Authorization: Bearer ${reader}`;
    assert.match(await raw(GET, "Host: localhost", bearer), /^HTTP\/1.1 200/);
    stand.codeHost.resetCalls();
    for (const lines of [
      [GET, "Host: localhost", "Host: api.github.com", bearer],
      [GET, "Host: localhost", bearer, "authorization: Bearer ghp_other"],
      [GET.replace("/api", "http://api.github.com/api"), "Host: localhost", bearer],
    ]) {
      assert.match(await raw(...lines), /^HTTP\/1.1 400/, lines.join());
    }
    assert.equal(stand.codeHost.calls.length, 0);
  });
});

describe("workflows and contents:write", () => {
  const REFS = "/api/v3/repos/acme/widgets/git/refs";
  const MERGE = "/api/v3/repos/acme/widgets/pulls/7/merge";
  const json = { headers: { "content-type": "application/json" } };
  const EVIL = "e".repeat(40);
  const shows = (path: RegExp, body: unknown): void =>
    stand.codeHost.inject({ path }, { status: 200, body: JSON.stringify(body) });
  const folder = (sha: string) => ({ tree: [{ path: ".github", type: "tree", sha }], truncated: false });
  const workflows = (sha: string) => ({ tree: [{ path: "workflows", type: "tree", sha }], truncated: false });
  const changed = (): string[] =>
    stand.codeHost.calls
      .filter(({ method }) => method !== "GET")
      .map(({ method, path }) => `${method} ${path}`);
  afterEach(() => stand.codeHost.clearFaults());

  it("a ref to a commit with other workflows is refused, however that was made [svc 8.13]", async () => {
    const token = await stand.mint("contents:write");
    shows(/git\/trees\/e{40}$/, folder("1"));
    shows(/git\/trees\/1$/, workflows("evil"));
    shows(/git\/trees\/HEAD$/, folder("2"));
    shows(/git\/trees\/2$/, workflows("good"));
    shows(/branches-where-head$/, []);
    stand.codeHost.resetCalls();
    const body = JSON.stringify({ ref: "refs/heads/x", sha: EVIL });
    const answer = await stand.ask(token, "POST", REFS, { ...json, body });
    assert.equal(answer.status, 403);
    assert.match(await answer.text(), /lacks the scope workflows:write/);
    assert.deepEqual(changed(), []);
    stand.codeHost.clearFaults();
    shows(/git\/trees\/(?:e{40}|HEAD)$/, folder("2"));
    shows(/git\/trees\/2$/, workflows("good"));
    shows(/git\/refs$/, {});
    assert.equal((await stand.ask(token, "POST", REFS, { ...json, body })).status, 200);
    assert.equal(changed().length, 1);
  });

  it("a pull request with workflow changes needs workflows:write to be merged", async () => {
    const token = await stand.mint("contents:write,pull_requests:write");
    stand.codeHost.resetCalls();
    shows(/pulls\/7\/files$/, [{ filename: ".github/workflows/ci.yml" }]);
    assert.equal((await stand.ask(token, "PUT", MERGE, { ...json, body: "{}" })).status, 403);
    assert.deepEqual(changed(), []);
    stand.codeHost.clearFaults();
    shows(/pulls\/7\/files$/, []);
    shows(/pulls\/7\/merge$/, { merged: true });
    assert.equal((await stand.ask(token, "PUT", MERGE, { ...json, body: "{}" })).status, 200);
    const wider = await stand.mint("contents:write,pull_requests:write,workflows:write");
    stand.codeHost.resetCalls();
    assert.equal((await stand.ask(wider, "PUT", MERGE, { ...json, body: "{}" })).status, 200);
    assert.equal(stand.codeHost.calls.length, 1);
  });

  it("a merge that the code host answers at its leisure needs contents:write, too", async () => {
    const token = await stand.mint("pull_requests:write,workflows:write");
    for (const path of ["merge-async", "update-branch"]) {
      const answer = await stand.ask(token, "PUT", `/api/v3/repos/acme/widgets/pulls/7/${path}`, {
        ...json,
        body: "{}",
      });
      assert.equal(answer.status, 403, path);
      assert.match(await answer.text(), /contents:write/);
    }
  });
});

describe("an answer of the API that breaks off", () => {
  it("is broken off at the client, and not asked for again", async () => {
    stand.codeHost.resetCalls();
    stand.codeHost.inject({ path: /\/issues$/, times: 1 }, { cutAfterBytes: 20 });
    const answer = await stand.ask(reader, "GET", "/api/v3/repos/acme/widgets/issues");
    assert.equal(answer.status, 200);
    await assert.rejects(answer.text());
    assert.equal(stand.codeHost.calls.length, 1);
  });
});

describe("LFS with a limited token", () => {
  const BATCH = "/acme/widgets.git/info/lfs/objects/batch";
  const LFS = { "content-type": "application/vnd.git-lfs+json", accept: "application/vnd.git-lfs+json" };
  const batch = async (token: string, text: string): Promise<Response> =>
    stand.ask(token, "POST", BATCH, { headers: LFS, body: text });

  let downloader: string;
  let uploader: string;
  before(async () => {
    downloader = await stand.mint("contents:read");
    uploader = await stand.mint("contents:write");
  });

  it("a batch is authorized by its operation; an unknown or missing one is refused", async () => {
    stand.codeHost.resetCalls();
    assert.equal((await batch(downloader, `{"operation":"upload","objects":[]}`)).status, 403);
    assert.equal((await batch(uploader, `{"operation":"destroy","objects":[]}`)).status, 403);
    assert.equal((await batch(uploader, `{"objects":[]}`)).status, 403);
    assert.equal((await batch(uploader, `x`)).status, 403);
    assert.equal(
      (
        await stand.ask(uploader, "POST", BATCH.replace("widgets", "secret"), {
          headers: LFS,
          body: `{"operation":"download"}`,
        })
      ).status,
      403,
    );
    assert.equal(
      (await stand.ask(downloader, "POST", "/acme/widgets.git/info/lfs/locks", { headers: LFS, body: "{}" }))
        .status,
      403,
    );
    assert.deepEqual(stand.codeHost.calls, []);
  });

  it("no LFS action contains the stored credential, and others keep narrow ones", async () => {
    const { url } = stand.codeHost;
    const stored = { Authorization: `Basic ${btoa(`x:${STORED}`)}`, "X-Kept": "1" };
    const objects = [
      {
        oid: "a",
        size: 1,
        actions: { download: { href: `${url}/acme/widgets.git/info/lfs/objects/aa?x=1`, header: stored } },
      },
      { oid: "b", size: 1, actions: { download: { href: "https://store.example/b", header: stored } } },
      {
        oid: "c",
        size: 1,
        actions: {
          verify: { href: "https://lfs.example/c", header: { Authorization: "RemoteAuth narrow" } },
        },
      },
      { oid: "d", size: 1, error: { code: 404, message: "none" } },
    ];
    stand.codeHost.inject(
      { path: /objects\/batch$/, times: 1 },
      { status: 200, body: JSON.stringify({ transfer: "basic", objects }) },
    );
    const answer = await batch(downloader, `{"operation":"download","objects":[{"oid":"a","size":1}]}`);
    const text = await answer.text();
    assert.equal(answer.status, 200);
    assert.doesNotMatch(text, new RegExp(`${STORED}|${btoa(`x:${STORED}`)}`));
    const { objects: found } = JSON.parse(text) as { objects: { actions?: Record<string, unknown> }[] };
    assert.deepEqual(
      found.map(({ actions }) => actions),
      [
        {
          download: {
            href: `${stand.svc.url}/acme/widgets.git/info/lfs/objects/aa?x=1`,
            header: { "X-Kept": "1" },
          },
        },
        { download: { href: "https://store.example/b", header: { "X-Kept": "1" } } },
        { verify: { href: "https://lfs.example/c", header: { Authorization: "RemoteAuth narrow" } } },
        undefined,
      ],
    );
  });

  it("only known fields of a batch request go on, each in its one spelling", async () => {
    stand.codeHost.inject({ path: /objects\/batch$/, times: 1 }, { status: 200, body: "{}" });
    stand.codeHost.resetCalls();
    await batch(downloader, `{"operation":"download","Operation":"upload","objects":[]}`);
    assert.equal(
      stand.codeHost.calls[0]?.headers["content-length"],
      String(`{"operation":"download","objects":[]}`.length),
    );
  });
});

describe("GET /repos/{owner}/{repo} with a limited token", () => {
  const PATH = "/api/v3/repos/acme/widgets";
  const REPOSITORY = { full_name: "acme/widgets", temp_clone_token: "AAAA-clone" };
  const inject = (fault: Parameters<ApiStand["codeHost"]["inject"]>[1]): void =>
    stand.codeHost.inject({ path: /\/repos\/acme\/widgets$/, times: 1 }, fault);
  const json = { "content-type": "application/json" };

  it("temp_clone_token, which clones the repository, is only for foreign credentials", async () => {
    inject({ status: 200, headers: { ...json, etag: '"1"' }, body: JSON.stringify(REPOSITORY) });
    const answer = await stand.ask(reader, "GET", PATH);
    assert.deepEqual(
      [answer.status, answer.headers.get("etag"), await answer.json()],
      [200, '"1"', { full_name: "acme/widgets" }],
    );
    inject({ status: 200, headers: json, body: JSON.stringify(REPOSITORY) });
    assert.deepEqual(await (await stand.ask("ghp_foreign", "GET", PATH)).json(), REPOSITORY);
  });

  it("an answer that cannot be looked into is not passed on", async () => {
    for (const fault of [
      { status: 200, headers: { ...json, "content-encoding": "br" }, body: "AAAA-clone" },
      { status: 206, headers: json, body: `_token":"AAAA-clone"}` },
      { status: 200, headers: json, body: `[{"temp_clone_token":"AAAA-clone"}]` },
    ]) {
      inject(fault);
      const answer = await stand.ask(reader, "GET", PATH, { headers: { range: "bytes=5-" } });
      assert.equal(answer.status, 502);
      assert.doesNotMatch(await answer.text(), /AAAA/);
    }
  });

  it("HEAD and other statuses pass", async () => {
    assert.equal((await stand.ask(reader, "HEAD", PATH)).status, 200);
    inject({ status: 301, headers: { location: `${stand.codeHost.apiUrl}/repositories/1` }, body: "{}" });
    const moved = await stand.ask(reader, "GET", PATH);
    assert.deepEqual([moved.status, await moved.text()], [301, "{}"]);
  });
});
