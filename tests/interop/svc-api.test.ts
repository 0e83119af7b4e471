import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { Octokit } from "@octokit/rest";
import { run, SVC_LAUNCHER, until, type Finished } from "@devplat/testkit";
import { STORED, startApiStand, type ApiStand } from "./svc-api-stand.ts";

let stand: ApiStand;
let reader: string;
let writer: string;
const WRITER = "issues:write,pull_requests:write,contents:write";
before(async () => {
  stand = await startApiStand();
  reader = await stand.mint("issues:read,contents:read,pull_requests:read");
  writer = await stand.mint(WRITER);
});
after(async () => stand.stop());

async function body(answer: Response): Promise<Record<string, unknown>> {
  return (await answer.json()) as Record<string, unknown>;
}

describe("the API proxy", () => {
  it("replaces Authorization by the stored credential, and forwards nothing else of it", async () => {
    stand.codeHost.resetCalls();
    const answer = await stand.ask(reader, "GET", "/api/v3/repos/acme/widgets", {
      headers: {
        cookie: "session=mine",
        "x-github-api-version": "2022-11-28",
        "x-other": "1",
        accept: "application/json",
      },
    });
    assert.equal(answer.status, 200);
    const [call] = stand.codeHost.calls;
    assert.equal(call?.authorization, `Bearer ${STORED}`);
    assert.deepEqual(
      [call?.headers["cookie"], call?.headers["x-other"], call?.headers["x-github-api-version"]],
      [undefined, undefined, "2022-11-28"],
    );
  });

  it("a foreign credential and none pass as they are", async () => {
    stand.codeHost.resetCalls();
    await stand.ask("ghp_foreign", "GET", "/api/v3/user");
    await stand.ask(undefined, "GET", "/api/v3/user");
    assert.deepEqual(
      stand.codeHost.calls.map((call) => call.authorization),
      ["Bearer ghp_foreign", undefined],
    );
  });

  it("keeps entity tags, rate limits and conditional requests", async () => {
    const first = await stand.ask(reader, "GET", "/api/v3/repos/acme/widgets/issues");
    assert.equal(first.headers.get("x-ratelimit-remaining"), "4999");
    const etag = first.headers.get("etag") ?? "";
    const again = await stand.ask(reader, "GET", "/api/v3/repos/acme/widgets/issues", {
      headers: { "if-none-match": etag },
    });
    assert.deepEqual([again.status, await again.text()], [304, ""]);
  });

  it("rewrites Link to the caller's view, and the numbered pages work", async () => {
    const first = await stand.ask(reader, "GET", "/api/v3/repos/acme/widgets/issues");
    const next = /<([^>]*)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
    assert.ok(next.startsWith(`${stand.svc.url}/api/v3/repositories/`), next);
    const second = await stand.ask(reader, "GET", next.slice(stand.svc.url.length));
    assert.deepEqual([second.status, ((await second.json()) as unknown[]).length], [200, 2]);
  });

  it("relays redirects without following them, rewritten where they lead to the API", async () => {
    stand.codeHost.rename("acme", "secret", "acme", "hidden");
    const moved = await stand.ask("ghu_the-stored-credential", "GET", "/api/v3/repos/acme/secret");
    stand.codeHost.rename("acme", "hidden", "acme", "secret");
    assert.deepEqual(
      [moved.status, moved.headers.get("location")],
      [301, `${stand.svc.url}/api/v3/repos/acme/hidden`],
    );
    const answer = await stand.ask(reader, "GET", "/api/v3/repos/acme/widgets/zipball/main");
    assert.deepEqual(
      [answer.status, answer.headers.get("location")],
      [302, `${stand.codeHost.url}/archives/main?token=signed`],
    );
  });

  it("relays ranges of big bodies, and HEAD without a body", async () => {
    const path = "/api/v3/repos/acme/widgets/releases/assets/1000000";
    const part = await stand.ask(reader, "GET", path, { headers: { range: "bytes=10-19" } });
    assert.deepEqual(
      [part.status, part.headers.get("content-range"), await part.text()],
      [206, "bytes 10-19/1000000", "0123456789"],
    );
    const head = await stand.ask(reader, "HEAD", path);
    assert.deepEqual(
      [head.status, head.headers.get("content-length"), await head.text()],
      [200, "1000000", ""],
    );
  });

  it("content of the code host never runs on our origin", async () => {
    const answer = await stand.ask(reader, "GET", "/api/v3/repos/acme/widgets/readme", {
      headers: { accept: "application/vnd.github.html" },
    });
    assert.match(await answer.text(), /<script>/);
    assert.equal(answer.headers.get("content-type"), "text/plain; charset=utf-8");
    assert.equal(answer.headers.get("content-security-policy"), "sandbox; default-src 'none'");
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    for (const name of ["set-cookie", "strict-transport-security", "access-control-allow-origin"]) {
      assert.equal(answer.headers.get(name), null, name);
    }
  });

  it("streams uploads, through the uploads interface", async () => {
    const bytes = new Uint8Array(3_000_000).fill(7);
    const answer = await stand.ask(
      writer,
      "POST",
      "/api/uploads/repos/acme/widgets/releases/1/assets?name=a.bin",
      {
        headers: { "content-type": "application/octet-stream" },
        body: bytes,
      },
    );
    const digest = createHash("sha256").update(bytes).digest("hex");
    assert.deepEqual(
      [answer.status, await body(answer)],
      [201, { name: "a.bin", size: 3_000_000, digest: `sha256:${digest}` }],
    );
    const refused = await stand.ask(
      reader,
      "POST",
      "/api/uploads/repos/acme/widgets/releases/1/assets?name=a.bin",
      {
        body: bytes,
      },
    );
    assert.match(String((await body(refused))["message"]), /contents:write/);
  });

  it("answers Expect: 100-continue itself, once the request is allowed", async () => {
    const ask = async (token: string): Promise<{ continued: boolean; status: number }> =>
      new Promise((resolve, reject) => {
        let continued = false;
        const { host } = new URL(stand.svc.url);
        const outgoing = httpRequest(`${stand.svc.url}/api/v3/repos/acme/widgets/issues`, {
          method: "POST",
          headers: {
            host,
            authorization: `Bearer ${token}`,
            expect: "100-continue",
            "content-type": "application/json",
            "content-length": 13,
          },
        });
        outgoing.on("continue", () => {
          continued = true;
          outgoing.end(`{"title":"x"}`);
        });
        outgoing.on("response", (answer) => {
          answer.resume();
          answer.on("end", () => resolve({ continued, status: answer.statusCode ?? 0 }));
        });
        outgoing.on("error", reject);
        outgoing.flushHeaders();
      });
    assert.deepEqual(await ask(writer), { continued: true, status: 201 });
    assert.deepEqual(await ask(reader), { continued: false, status: 403 });
  });

  it("a client that leaves ends the request at the code host", async () => {
    stand.codeHost.resetCalls();
    const { port } = new URL(stand.svc.url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write(
      `GET /api/v3/repos/acme/widgets/releases/assets/400000000 HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${reader}\r\n\r\n`,
    );
    await new Promise((resolve) => socket.once("data", resolve));
    socket.destroy();
    const deadline = performance.now() + 10_000;
    let call = stand.codeHost.calls.at(-1);
    let earlier = -1;
    // The code host's side ends short of the whole when nothing more is taken.
    while (performance.now() < deadline && (call?.bytesOut ?? 0) !== earlier) {
      earlier = call?.bytesOut ?? 0;
      await new Promise((resolve) => setTimeout(resolve, 200));
      call = stand.codeHost.calls.at(-1);
    }
    assert.ok((call?.bytesOut ?? 0) < 400_000_000);
  });

  it("a code host that is down is 502 with its name, and the response is complete", async () => {
    stand.codeHost.inject({ path: /rate_limit/, times: 1 }, { cutAfterBytes: 0 });
    const cut = await stand.ask(reader, "GET", "/api/v3/rate_limit").then(
      async (answer) => `${answer.status} ${String((await body(answer))["message"])}`,
      () => "broken",
    );
    assert.match(cut, /^(?:502 127\.0\.0\.1:\d+ cannot be reached|broken|200)/);
  });

  it("an upstream 401 is 403 for a swapped credential, and relayed for a foreign one", async () => {
    stand.codeHost.inject({ path: /\/user$/, times: 2 }, { status: 401, body: "{}" });
    const ours = await stand.ask(reader, "GET", "/api/v3/user");
    assert.deepEqual(
      [ours.status, /connect the account again/.test(String((await body(ours))["message"]))],
      [403, true],
    );
    assert.equal((await stand.ask("ghp_foreign", "GET", "/api/v3/user")).status, 401);
  });

  it("other methods than the API's are 405, and other paths are not proxied", async () => {
    assert.equal((await stand.ask(reader, "OPTIONS", "/api/v3/user")).status, 405);
    assert.equal((await stand.ask(reader, "GET", "/api/v4/user")).status, 404);
    assert.equal((await stand.ask(reader, "GET", "/api/v3x/user")).status, 404);
  });

  it("denials and writes are in the audit trail, under the action's name", async () => {
    await stand.ask(reader, "POST", "/api/v3/repos/acme/widgets/issues", { body: "{}" });
    await stand.ask(writer, "POST", "/api/v3/repos/acme/widgets/issues", { body: `{"title":"x"}` });
    const found = await until(async () => {
      const answer = await stand.ask(stand.session, "GET", "/api/audit?limit=50");
      const text = await answer.text();
      const written = ["api.write", "access.denied", "/api/v3/repos/acme/widgets/issues"];
      return written.every((word) => text.includes(word)) ? text : undefined;
    });
    assert.doesNotMatch(found, /svcx_[0-9A-Za-z]{20}|ghu_/);
  });
});

describe("limited tokens at the API proxy", () => {
  const refused: [name: string, method: string, path: string, headers?: Record<string, string>][] = [
    ["another repository", "GET", "/api/v3/repos/acme/secret"],
    ["HEAD of another repository", "HEAD", "/api/v3/repos/acme/secret"],
    ["a number of another repository", "GET", "/api/v3/repositories/2"],
    ["a number that is none", "GET", "/api/v3/repositories/999"],
    ["a dot segment", "GET", "/api/v3/repos/acme/widgets/%2e%2e/secret"],
    ["an encoded slash and dots", "GET", "/api/v3/repos/acme/widgets/contents/..%2f..%2fsecret"],
    ["a doubled slash", "GET", "/api/v3//repos/acme/widgets"],
    ["an unmapped route", "GET", "/api/v3/repos/acme/widgets/nothing"],
    ["an account's route", "GET", "/api/v3/user/repos"],
    ["an account's secrets", "GET", "/api/v3/user/keys"],
    ["a search everywhere", "GET", "/api/v3/search/issues?q=x"],
    ["a method override", "GET", "/api/v3/repos/acme/widgets", { "x-http-method-override": "DELETE" }],
    ["a fork's comparison", "GET", "/api/v3/repos/acme/widgets/compare/main...mallory:x"],
    ["GraphQL by GET", "GET", "/api/graphql?query=%7Bviewer%7Blogin%7D%7D"],
  ];
  for (const [name, method, path, headers] of refused) {
    it(`${name} is refused without a request to the code host`, async () => {
      stand.codeHost.resetCalls();
      const answer = await stand.ask(writer, method, path, headers === undefined ? {} : { headers });
      assert.ok([400, 403].includes(answer.status), String(answer.status));
      const asked = stand.codeHost.calls.filter((call) => !/\/repositories\/\d+$/.test(call.path));
      assert.deepEqual(asked, []);
    });
  }

  it("a repository that is there and one that is not are refused alike", async () => {
    const [one, other] = await Promise.all(
      ["/api/v3/repositories/2", "/api/v3/repositories/999"].map(async (path) =>
        String((await body(await stand.ask(reader, "GET", path)))["message"]).replace(/\d+/, "N"),
      ),
    );
    assert.equal(one, other);
  });

  it("batches, several operations and ids of other repositories are refused in GraphQL", async () => {
    const ask = async (text: string): Promise<string> => {
      const answer = await stand.ask(writer, "POST", "/api/graphql", {
        headers: { "content-type": "application/json" },
        body: text,
      });
      return `${answer.status} ${String((await body(answer))["message"])}`;
    };
    stand.codeHost.resetCalls();
    assert.match(await ask(`[{"query":"{viewer{login}}"}]`), /^400 batches/);
    assert.match(await ask(`{"query":"{viewer{login}"}`), /^403 .*not valid GraphQL/);
    assert.match(
      await ask(`{"query":"query A{viewer{login}} query B{viewer{login}}"}`),
      /^403 .*several operations/,
    );
    assert.match(
      await ask(`{"query":"{repository(owner:\\"acme\\",name:\\"secret\\"){name}}"}`),
      /^403 .*not for acme\/secret/,
    );
    assert.match(await ask(`{"query":"\xff"`), /^400/);
    assert.deepEqual(stand.codeHost.calls, []);
    assert.match(await ask(`{"query":"{node(id:\\"I_2\\"){id}}"}`), /^403 .*no repository of the token/);
    assert.match(await ask(`{"query":"{node(id:\\"I_77\\"){id}}"}`), /^403 .*no repository of the token/);
  });

  it("the forwarded body is the one that was authorized", async () => {
    stand.codeHost.resetCalls();
    const text = `{"query":"{repository(owner:\\"acme\\",name:\\"secret\\"){name}}","query":"{repository(owner:\\"acme\\",name:\\"widgets\\"){name}}"}`;
    const answer = await stand.ask(reader, "POST", "/api/graphql", { body: text });
    assert.deepEqual(await body(answer), { data: { repository: { name: "widgets" } } });
    const size = stand.codeHost.calls.at(-1)?.bytesIn ?? 0;
    assert.ok(size < text.length && size > 0);
  });

  it("a body that is too large, compressed, or no JSON is refused", async () => {
    const json = { "content-type": "application/json" };
    const large = await stand.ask(reader, "POST", "/api/graphql", {
      headers: json,
      body: `{"query":"${"x".repeat(1_100_000)}"}`,
    });
    assert.equal(large.status, 413);
    const gzip = await stand.ask(reader, "POST", "/api/graphql", {
      headers: { ...json, "content-encoding": "gzip" },
      body: "x",
    });
    assert.equal(gzip.status, 415);
    assert.equal((await stand.ask(reader, "POST", "/api/graphql", { headers: json, body: "x" })).status, 400);
  });

  it("a pull request from another repository's branch is refused", async () => {
    const ask = async (head: string): Promise<number> =>
      (
        await stand.ask(writer, "POST", "/api/v3/repos/acme/widgets/pulls", {
          body: JSON.stringify({ head, base: "main", title: "t" }),
        })
      ).status;
    assert.deepEqual([await ask("topic"), await ask("mallory:topic")], [201, 403]);
  });

  it("pull_requests:write comments on pull requests, and not on issues", async () => {
    const token = await stand.mint("pull_requests:write");
    const ask = async (number: number): Promise<number> =>
      (
        await stand.ask(token, "POST", `/api/v3/repos/acme/widgets/issues/${number}/comments`, {
          body: `{"body":"x"}`,
        })
      ).status;
    assert.deepEqual([await ask(2), await ask(1)], [201, 403]);
  });

  it("session, unknown, revoked and misplaced tokens open nothing and stay here", async () => {
    stand.codeHost.resetCalls();
    assert.equal((await stand.ask(stand.session, "GET", "/api/v3/user")).status, 403);
    assert.equal((await stand.ask(`svcx_${"0".repeat(49)}`, "GET", "/api/v3/user")).status, 401);
    const gone = await stand.mint("contents:read");
    await stand.ask(stand.session, "POST", "/api/tokens/revoke", {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token: gone }),
    });
    assert.equal((await stand.ask(gone, "GET", "/api/v3/user")).status, 401);
    assert.equal((await stand.ask(undefined, "GET", `/api/v3/user?access_token=${reader}`)).status, 400);
    assert.equal(
      (await stand.ask(undefined, "GET", "/api/v3/user", { headers: { "user-agent": `x ${reader}` } }))
        .status,
      400,
    );
    const asked = stand.codeHost.calls.filter((call) => call.path.startsWith("/api/"));
    assert.deepEqual(asked, []);
    assert.doesNotMatch(stand.svc.log(), new RegExp(`${reader.slice(12)}|${STORED}`));
  });
});

describe("Octokit through the API proxy", () => {
  it("lists with pagination, creates, uploads and queries GraphQL with a new base URL", async () => {
    const octokit = new Octokit({ auth: writer, baseUrl: `${stand.svc.url}/api/v3`, log: silent() });
    const repo = { owner: "acme", repo: "widgets" };
    assert.equal((await octokit.rest.repos.get(repo)).data.full_name, "acme/widgets");
    const issues = await octokit.paginate(octokit.rest.issues.listForRepo, repo);
    assert.deepEqual(
      issues.map(({ number }) => number),
      [1, 2, 3, 4, 5],
    );
    assert.equal((await octokit.rest.issues.create({ ...repo, title: "new" })).data.number, 6);
    const content = await octokit.rest.repos.getContent({ ...repo, path: "docs/a b.md" });
    assert.equal((content.data as { path: string }).path, "docs/a b.md");
    const found: { repository: { name: string } } = await octokit.graphql(
      `query($o: String!, $n: String!) { repository(owner: $o, name: $n) { name } }`,
      { o: "acme", n: "widgets" },
    );
    assert.equal(found.repository.name, "widgets");
    await assert.rejects(octokit.rest.repos.get({ owner: "acme", repo: "secret" }), { status: 403 });
  });
});

describe("svc scopes explain", () => {
  const explain = async (...args: string[]): Promise<Finished> =>
    run(SVC_LAUNCHER, ["scopes", "explain", ...args], {
      env: { ...process.env, SVC_URL: stand.svc.url, SVC_TOKEN: stand.session },
    });

  it("names the reason and the rule with exit code 1; --json prints the full response", async () => {
    const refused = await explain("/repos/acme/widgets/issues", "--method", "post", "--token", reader);
    assert.deepEqual(
      [refused.code, refused.stdout.split("\n").slice(0, 2)],
      [
        1,
        [
          "refused: The token lacks the scope issues:write for acme/widgets",
          "rule: POST /repos/{owner}/{repo}/issues",
        ],
      ],
    );
    assert.doesNotMatch(refused.stdout + refused.stderr, new RegExp(reader.slice(12)));
    const query = `{ repository(owner: "acme", name: "widgets") { issues { totalCount } } }`;
    const scopes = ["--scopes", "issues:read", "--repository", "acme/widgets"];
    const allowed = await explain(...scopes, "--graphql", query, "--json");
    assert.equal(allowed.code, 0, allowed.stderr);
    assert.deepEqual((JSON.parse(allowed.stdout) as { needs: string[] }).needs, ["issues:read"]);
    // The address may stand behind the repositories, of which there may be several.
    for (const repositories of [
      ["--repository", "acme/a", "--repository", "acme/widgets"],
      ["--repository", "acme/a,acme/widgets"],
    ]) {
      const labels = await explain("--scopes", "pulls:read", ...repositories, "/repos/acme/widgets/labels");
      assert.equal(labels.code, 0, labels.stderr);
      assert.match(labels.stdout, /^needs: issues:read or pull_requests:read$/m);
    }
  });

  it("wrong usage exits with 1 or 2 and names the missing part", async () => {
    const neither = await explain("/user");
    assert.ok([1, 2].includes(neither.code));
    assert.match(neither.stderr, /token/);
    const noFile = await explain("--token", reader, "--graphql", "@/nowhere/query");
    assert.deepEqual([noFile.code, /cannot be read/.test(noFile.stderr)], [2, true]);
  });
});

function silent(): Record<"debug" | "info" | "warn" | "error", () => void> {
  const nothing = (): void => undefined;
  return { debug: nothing, info: nothing, warn: nothing, error: nothing };
}
