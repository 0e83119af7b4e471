import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { encodeErrorLine } from "@devplat/git-protocol";
import { git, repositories, startVersityGateway, type Fault } from "@devplat/testkit";
import { basic, command, contentOf } from "./svc-git-stand.ts";
import { HOST_TOKEN, InstancesStand, addressOf, type Instance } from "./svc-instances-stand.ts";

const UPLOAD_PACK = {
  "git-protocol": "version=2",
  "content-type": "application/x-git-upload-pack-request",
};
const RESULT = { "content-type": "application/x-git-upload-pack-result" };
const LS_REFS = command("ls-refs", ["ref-prefix refs/heads/"]);

interface Attack {
  readonly title: string;
  /** Credential at the code host. Undefined: none. */
  readonly token?: string;
  readonly path?: string;
  /** Default: the request whose response is in the bucket. */
  readonly body?: (stored: Buffer, oid: string) => Buffer | string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly host?: Fault;
  readonly status: number;
}

const both = (stored: Buffer): Buffer => Buffer.concat([LS_REFS, stored]);
const ATTACKS: readonly Attack[] = [
  { title: "without a credential", status: 401 },
  { title: "with an unknown credential", token: "unknown", status: 401 },
  { title: "with one that has no access", token: "bob", status: 404 },
  { title: "with one that was revoked since A has authorized it", token: "revoked", status: 401 },
  { title: "behind an ls-refs in one body", token: "bob", body: both, status: 404 },
  { title: "behind an anonymous ls-refs in one body", body: both, status: 401 },
  {
    title: "before its ls-refs in one body",
    token: HOST_TOKEN,
    body: (stored) => Buffer.concat([stored, LS_REFS]),
    status: 200,
  },
  { title: "with protocol v1", token: "bob", headers: { "git-protocol": "version=1" }, status: 404 },
  {
    title: "for another path of the repository",
    token: "bob",
    path: "info/refs?service=git-upload-pack",
    body: () => undefined,
    status: 404,
  },
  {
    title: "for the dumb list of packs",
    token: "bob",
    path: "objects/info/packs",
    body: () => undefined,
    status: 404,
  },
  { title: "for HEAD without a credential", path: "HEAD", body: () => undefined, status: 401 },
  {
    title: "by svc/ensure",
    token: "bob",
    path: "svc/ensure",
    headers: { "content-type": "application/json" },
    body: (_, oid) => JSON.stringify({ refs: { "refs/heads/main": oid } }),
    status: 404,
  },
  {
    title: "while the code host answers 500",
    token: "carol",
    host: { status: 500, body: "broken" },
    status: 500,
  },
  {
    title: "while it answers 302",
    token: "carol",
    host: { status: 302, headers: { location: "/login" }, body: "" },
    status: 302,
  },
  {
    title: "while it answers 200 with nothing",
    token: "carol",
    host: { status: 200, body: "" },
    status: 200,
  },
  {
    title: "while it answers 200 with a page",
    token: "carol",
    host: { status: 200, headers: { "content-type": "text/html" }, body: "<b>log in</b>" },
    status: 200,
  },
  {
    title: "while it answers 200 with ERR",
    token: "carol",
    host: { status: 200, headers: RESULT, body: encodeErrorLine("no access") },
    status: 200,
  },
  {
    title: "while its list of refs has no end",
    token: "carol",
    host: { status: 200, headers: RESULT, body: `003d${"a".repeat(40)} refs/heads/main\n` },
    status: 200,
  },
];

describe("access at an instance to what only another one has cached", { timeout: 240_000 }, () => {
  let stand: InstancesStand;
  let a: Instance;
  let b: Instance;
  let oid: string;
  let otherPath: string;
  let stored: Buffer;
  before(async () => {
    stand = await InstancesStand.start({ bucket: startVersityGateway });
    [a, b] = await Promise.all([stand.addInstance("a"), stand.addInstance("b")]);
    for (const each of [a, b]) await stand.ready(each);
    stand.host.addUser("bob", "bob", { repositories: ["acme/other"] });
    stand.host.addUser("carol", "carol");
    const build = (dir: string): Promise<void> => repositories.linear(dir, { seed: 22 });
    ({ path: otherPath } = await stand.host.addRepository("acme", "other", { private: true, build }));
    stand.host.addUser("dave", "revoked");
    ({ oid, stored } = await cached("widgets", stand.path));
    await post(a, "widgets", LS_REFS, "revoked");
    assert.match((await post(a, "widgets", stored, "revoked")).text, /PACK/);
    stand.host.revoke("revoked");
  });
  after(async () => stand?.stop());

  const post = async (
    { svc }: Instance,
    name: string,
    body: Buffer | string | undefined,
    token?: string,
    path = "git-upload-pack",
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; text: string; state: string | null }> => {
    const response = await fetch(`${svc.url}/acme/${name}.git/${path}`, {
      method: body === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: {
        ...(body === undefined ? {} : UPLOAD_PACK),
        ...headers,
        ...(token === undefined ? {} : { authorization: basic(token) }),
      },
      ...(body === undefined ? {} : { body }),
    });
    const text = Buffer.from(await response.arrayBuffer()).toString("latin1");
    return { status: response.status, text, state: response.headers.get("x-svc-cache") };
  };
  const tipOf = async (path: string): Promise<string> => git(["-C", path, "rev-parse", "refs/heads/main"]);
  const fetchOf = (wanted: string): Buffer => command("fetch", ["no-progress", `want ${wanted}`, "done"]);
  /** A has a mirror and a stored response, and the bucket has both. */
  const cached = async (name: string, path: string): Promise<{ oid: string; stored: Buffer }> => {
    await stand.list(a.svc, name);
    const tip = await tipOf(path);
    for (let use = 0; use < 3; use++) {
      await post(a, name, LS_REFS, HOST_TOKEN);
      assert.match((await post(a, name, fetchOf(tip), HOST_TOKEN)).text, /PACK/);
    }
    await stand.uploaded(a, name);
    return { oid: tip, stored: fetchOf(tip) };
  };
  const addCached = async (
    name: string,
    seed: number,
    isPrivate = true,
  ): Promise<{ oid: string; stored: Buffer; path: string }> => {
    const { path } = await stand.host.addRepository("acme", name, {
      private: isPrivate,
      build: (dir) => repositories.linear(dir, { seed }),
    });
    return { path, ...(await cached(name, path)) };
  };

  for (const { title, token, path, body, headers, host, status } of ATTACKS) {
    it(`a fetch ${title} gets nothing, and the bucket is not asked`, async () => {
      if (host !== undefined) stand.host.inject({ command: "ls-refs" }, host);
      b.s3.resetCounts();
      const sent = body === undefined ? stored : body(stored, oid);
      const answer = await post(b, "widgets", sent, token, path, headers);
      stand.host.clearFaults();
      assert.equal(answer.status, status, answer.text.slice(0, 200));
      assert.doesNotMatch(answer.text, /PACK/);
      assert.ok(!answer.text.includes(oid));
      assert.equal(b.s3.counts.get, 0, "requests to the bucket");
    });
  }

  it("a token of the service for another repository opens nothing", async () => {
    const fields = { repository: "acme/other", scopes: "contents:read", duration: "1h" };
    const { token } = await stand.call<{ token: string }>(a.svc, "POST", "/api/tokens", fields);
    const answer = await post(b, "widgets", stored, token);
    assert.equal(answer.status, 403);
    assert.doesNotMatch(answer.text, /PACK/);
  });

  it("a public repository that turned private, or has a new name, is closed at B, too", async () => {
    const open = await addCached("open", 21, false);
    stand.host.setVisibility("acme", "open", "private");
    assert.equal((await post(b, "open", open.stored)).status, 401);
    stand.host.rename("acme", "open", "acme", "moved");
    const answer = await post(b, "open", open.stored, "carol");
    assert.equal(answer.status, 301);
    assert.doesNotMatch(answer.text, /PACK/);
  });

  it("an object of another repository is not served through a readable one", async () => {
    const { oid: ofOther } = await cached("other", otherPath);
    await post(b, "other", LS_REFS, "bob");
    assert.doesNotMatch((await post(b, "other", stored, "bob")).text, /PACK/);
    assert.match((await post(b, "other", fetchOf(ofOther), "bob")).text, /PACK/);
  });

  it("of a repository that was made again under its name, B serves nothing old", async () => {
    const old = await addCached("again", 23);
    await stand.host.remove("acme", "again");
    const { path } = await stand.host.addRepository("acme", "again", {
      private: true,
      build: (dir) => repositories.linear(dir, { seed: 24, commits: 5 }),
    });
    await post(b, "again", LS_REFS, "carol");
    assert.doesNotMatch((await post(b, "again", old.stored, "carol")).text, /PACK/);
    const folder = await stand.tryClone(addressOf(b.svc.url, "again", "carol"), ["--mirror"]);
    assert.ok(folder !== undefined);
    assert.equal(await contentOf(folder), await contentOf(path));
  });

  it("a commit that was pushed away is not served, though the bucket has it", async () => {
    const forced = await addCached("forced", 25);
    await git(["-C", forced.path, "update-ref", "refs/heads/main", `${forced.oid}~3`]);
    await post(b, "forced", LS_REFS, "carol");
    stand.host.resetCalls();
    const answer = await post(b, "forced", forced.stored, "carol");
    assert.notEqual(answer.state, "hit");
    assert.equal(stand.fetches(), 1);
  });

  it("with its own authorization a caller gets it at B without a fetch", async () => {
    stand.host.resetCalls();
    const answer = await post(b, "widgets", stored, "carol");
    assert.match(answer.text, /PACK/);
    assert.equal(answer.state, "hit");
    const commands = stand.host.calls.map((each) => each.command).filter((each) => each !== undefined);
    assert.deepEqual(commands, ["ls-refs"]);
    assert.ok(b.s3.counts.get > 0);
  });
});
