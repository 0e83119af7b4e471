import assert from "node:assert/strict";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { DatabaseSync } from "node:sqlite";
import { gitEnvironment, repositories, run, until } from "@devplat/testkit";
import { HOST_TOKEN, startAdminStand, type AdminStand } from "./svc-admin-stand.ts";

const REPOSITORY = "acme/widgets";
const READ = "contents:read";
const WRITE = "contents:write";

describe("proxy tokens on git routes, with stock git", { timeout: 240_000 }, () => {
  let stand: AdminStand;
  before(async () => {
    stand = await startAdminStand();
    await stand.call("POST", "/api/cached-repos", { owner: "acme", name: "widgets" });
  });
  after(async () => stand.stop());

  const refused = async (userinfo: string, repository = REPOSITORY): Promise<string> => {
    stand.host.resetCalls();
    const { code, stderr } = await stand.clone(repository, userinfo);
    assert.notEqual(code, 0);
    assert.deepEqual(
      stand.host.calls.filter(({ authorization }) => authorization !== undefined),
      [],
      "a refused token must not become a credential upstream",
    );
    return stderr;
  };
  const pushTo = async (path: string): Promise<{ code: number; stderr: string }> => {
    const inClone = { cwd: path, env: gitEnvironment() };
    const author = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
    await run("git", [...author, "commit", "--quiet", "--allow-empty", "-m", "pushed"], inClone);
    return run("git", ["push", "--quiet", "origin", "HEAD:refs/heads/pushed"], inClone);
  };

  it("a token alone clones a private repository, the second time from the cache", async () => {
    const { token } = await stand.mint(REPOSITORY, READ);
    for (const fetches of [1, 0]) {
      stand.host.resetCalls();
      const { code, stderr } = await stand.clone(REPOSITORY, `x:${token}`);
      assert.equal(code, 0, stderr);
      assert.equal(stand.host.calls.filter(({ command }) => command === "fetch").length, fetches);
    }
  });

  it("the code host sees the stored credential in its own form, and never the token [svc 8.15]", async () => {
    const { token } = await stand.mint(REPOSITORY, READ);
    stand.host.resetCalls();
    await stand.clone(REPOSITORY, `x:${token}`);
    const sent = new Set(stand.host.calls.map(({ authorization }) => authorization).filter(Boolean));
    assert.deepEqual([...sent], [`Basic ${btoa(`x-access-token:${HOST_TOKEN}`)}`]);
    assert.doesNotMatch(JSON.stringify(stand.host.calls), /svcx_/);
  });

  it("the token is accepted as user name, as bearer and as token", async () => {
    const { token } = await stand.mint(REPOSITORY, READ);
    assert.equal((await stand.clone(REPOSITORY, `${token}:x-oauth-basic`)).code, 0);
    for (const scheme of ["Bearer", "token"]) {
      const header = ["-c", `http.extraHeader=Authorization: ${scheme} ${token}`];
      assert.equal((await stand.clone(REPOSITORY, "", header)).code, 0, scheme);
    }
  });

  it("without a credential nothing is served, although the clone is in the cache", async () => {
    assert.notEqual((await stand.clone(REPOSITORY)).code, 0);
  });

  it("a token does not open another repository", async () => {
    const { token } = await stand.mint(REPOSITORY, READ);
    assert.match(await refused(`x:${token}`, "acme/other"), /403/);
  });

  it("a token without contents opens nothing", async () => {
    const { token } = await stand.mint(REPOSITORY, "issues:write");
    assert.match(await refused(`x:${token}`), /403/);
  });

  it("a read token does not push, a write token does", async () => {
    const reader = await stand.clone(REPOSITORY, `x:${(await stand.mint(REPOSITORY, READ)).token}`);
    stand.host.resetCalls();
    assert.notEqual((await pushTo(reader.path)).code, 0);
    assert.equal(stand.host.calls.filter(({ path }) => path.endsWith("git-receive-pack")).length, 0);
    const writer = await stand.clone(REPOSITORY, `x:${(await stand.mint(REPOSITORY, WRITE)).token}`);
    const pushed = await pushTo(writer.path);
    assert.equal(pushed.code, 0, pushed.stderr);
  });

  it("a revoked token opens nothing from then on [svc 1.14]", async () => {
    const { token, id } = await stand.mint(REPOSITORY, READ);
    assert.equal((await stand.clone(REPOSITORY, `x:${token}`)).code, 0);
    assert.equal((await stand.call("DELETE", `/api/tokens/${id}`)).status, 204);
    assert.match(await refused(`x:${token}`), /Authentication failed/);
  });

  it("an expired token is refused", async () => {
    const { token, id } = await stand.mint(REPOSITORY, READ);
    const database = new DatabaseSync(join(stand.svc.dataDir, "svc.db"), { timeout: 5000 });
    database.prepare("UPDATE tokens SET expires_at = 1 WHERE id = ?").run(id);
    database.close();
    assert.match(await refused(`x:${token}`), /Authentication failed/);
  });

  it("a session token does not open repositories: 403 [svc 8.16]", async () => {
    assert.match(await refused(`x:${stand.admin}`), /403/);
  });

  it("a proxy token outside of Authorization is not forwarded", async () => {
    const { token } = await stand.mint(REPOSITORY, READ);
    stand.host.resetCalls();
    const url = `${stand.svc.url}/${REPOSITORY}.git/info/refs?service=git-upload-pack`;
    assert.equal((await fetch(url, { headers: { "user-agent": `git/${token}` } })).status, 400);
    assert.equal(stand.host.calls.length, 0);
    await fetch(`${url}&x=${token}`, { headers: { "x-token": token, cookie: token } });
    assert.doesNotMatch(JSON.stringify(stand.host.calls), /svcx_/);
  });

  it("a stored credential that the code host revokes opens nothing, even cached", async () => {
    const { body } = await stand.call("POST", "/auth/test-login", {
      username: "leaver",
      role: "user",
      host_token: "ghp_leaver",
    });
    stand.host.addUser("leaver", "ghp_leaver");
    const minted = await stand.call(
      "POST",
      "/api/tokens",
      { repository: REPOSITORY, scopes: READ, duration: "1h" },
      String(body["session_token"]),
    );
    const userinfo = `x:${String(minted.body["token"])}`;
    assert.equal((await stand.clone(REPOSITORY, userinfo)).code, 0);
    stand.host.revoke("ghp_leaver");
    const gone = await stand.clone(REPOSITORY, userinfo);
    assert.notEqual(gone.code, 0);
    // Not 401, which would make git forget a token that is good.
    assert.match(
      gone.stderr,
      /stored credential of leaver any more: connect the account again at http[^ ]*\/ui/,
    );
    assert.match(gone.stderr, /403/);
  });

  it("minting asks the code host whether the repository can be read", async () => {
    const request = { repository: "acme/none", scopes: READ, duration: "1h" };
    assert.equal((await stand.call("POST", "/api/tokens", request)).status, 422);
    assert.equal((await stand.call("POST", "/api/tokens?check=false", request)).status, 201);
  });

  it("a disabled repository is passed through, and counted as bypass", async () => {
    const { body } = await stand.call("POST", "/api/cached-repos", { owner: "acme", name: "other" });
    const { token } = await stand.mint("acme/other", READ);
    await stand.clone("acme/other", `x:${token}`);
    await stand.call("PATCH", `/api/cached-repos/${String(body["id"])}`, { enabled: false });
    stand.host.resetCalls();
    assert.equal((await stand.clone("acme/other", `x:${token}`)).code, 0);
    assert.equal(stand.host.calls.filter(({ command }) => command === "fetch").length, 1);
    const metrics = await (await fetch(stand.svc.metricsUrl)).text();
    assert.match(metrics, /svc_cache_request_total\{owner="acme",repo="other",result="bypass"\} 1/);
    assert.match(metrics, /svc_cache_repos_active 1/);
  });

  it("figures follow the clones, purge empties the cache, delete unlists", async () => {
    await stand.host.addRepository("acme", "figures", { build: repositories.linear });
    const added = await stand.call("POST", "/api/cached-repos", { owner: "acme", name: "figures" });
    const path = `/api/cached-repos/${String(added.body["id"])}`;
    const stats = async (): Promise<Record<string, unknown>> =>
      (await stand.call("GET", path)).body["stats"] as Record<string, unknown>;
    const fetches = async (): Promise<number> => {
      stand.host.resetCalls();
      assert.equal((await stand.clone("acme/figures")).code, 0);
      return stand.host.calls.filter(({ command }) => command === "fetch").length;
    };
    assert.deepEqual([await fetches(), await fetches()], [1, 0]);
    const { hits, misses, response_files: files, size_bytes: size, bytes_saved: saved } = await stats();
    assert.deepEqual([hits, misses, files], [1, 1, 1]);
    assert.ok(Number(size) > 0 && Number(saved) > 0);
    assert.equal((await stand.call("POST", `${path}/purge`)).status, 202);
    await until(async () => (await stats())["response_files"] === 0);
    assert.deepEqual([await fetches(), await fetches()], [1, 0]);
    assert.equal((await stand.call("DELETE", path)).status, 204);
    assert.equal(await fetches(), 1);
    const metrics = await (await fetch(stand.svc.metricsUrl)).text();
    assert.match(metrics, /svc_cache_request_total\{owner="acme",repo="figures",result="nocache"\} 1/);
    const kept = (): string[] => readdirSync(stand.svc.dataDir, { recursive: true }).map(String);
    await until(async () => !kept().some((name) => name.includes("figures")));
  });

  it("no secret is in the log, database or folder, and only the owner reads the key", async () => {
    const { token } = await stand.mint(REPOSITORY, READ);
    await stand.clone(REPOSITORY, `x:${token}`);
    await stand.svc.logged(/"cache_state":"hit"/);
    assert.doesNotMatch(stand.svc.log(), /svc[rxa]_|ghp_/);
    for (const file of readdirSync(stand.svc.dataDir, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const content = readFileSync(join(file.parentPath, file.name));
      for (const secret of [HOST_TOKEN, token, stand.admin]) {
        assert.equal(content.includes(secret), false, file.name);
      }
    }
    assert.equal(statSync(join(stand.svc.dataDir, "encryption.key")).mode & 0o777, 0o600);
  });
});
