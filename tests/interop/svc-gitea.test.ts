import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Secret, systemClock } from "@devplat/base";
import {
  freePort,
  gitEnvironment,
  run,
  startGitea,
  startSvc,
  tempFolder,
  type Gitea,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { codeHostFor } from "../../apps/svc/src/code-host/code-host-for.ts";
import { HostClient } from "../../apps/svc/src/code-host/host-client.ts";
import { HostOauth } from "../../apps/svc/src/code-host/host-oauth.ts";

const HOOK_SECRET = "planted-hook-secret";

describe("svc in front of a real Gitea (host.kind: gitea)", { timeout: 240_000 }, () => {
  let gitea: Gitea;
  let svc: Svc;
  let folder: TempFolder;
  let session: string;

  before(async () => {
    gitea = await startGitea();
    folder = await tempFolder("svc-gitea");
    await gitea.createUser("ada");
    await gitea.createUser("bob");
    await gitea.createRepository("ada", "notes", { private: true });
    // Gitea compares the callback's address to the letter, so the port has to be known before.
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const { clientId, clientSecret } = await gitea.createApplication(`${url}/auth/callback`);
    svc = await startSvc({
      codeHost: { url: gitea.url, apiUrl: gitea.apiUrl },
      port,
      env: {
        SVC_DEV_MODE: undefined,
        SVC_ENCRYPTION_KEY: "0123456789abcdef".repeat(4),
        SVC_ADMINS: "ada",
        SVC_HOST_KIND: "gitea",
        SVC_HOST_CLIENT_ID: clientId,
        SVC_HOST_CLIENT_SECRET: clientSecret,
        SVC_HOST_WEBHOOK_SECRET: HOOK_SECRET,
      },
    });
    session = await signIn("ada");
  });
  after(async () => {
    await svc.stop();
    await gitea.stop();
    await folder.remove();
  });

  /** A login as a browser does it; gives the session's token. */
  const signIn = async (login: string): Promise<string> => {
    const begun = await fetch(`${svc.url}/auth/login`, { redirect: "manual" });
    const [cookie = ""] = (begun.headers.get("set-cookie") ?? "").split(";");
    const back = await gitea.visit(begun.headers.get("location") ?? "", login);
    assert.equal(back.origin + back.pathname, `${svc.url}/auth/callback`);
    const done = await fetch(back, { redirect: "manual", headers: { cookie } });
    assert.equal(done.status, 303, await done.text());
    return /svc_session=(\w+)/.exec(done.headers.getSetCookie().join())?.[1] ?? "";
  };
  const api = async (method: string, path: string, body?: unknown, token = session) => {
    const answer = await fetch(svc.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown> };
  };
  const mint = async (scopes: string): Promise<string> => {
    const { status, body } = await api("POST", "/api/tokens", {
      repository: "ada/notes",
      scopes,
      duration: "1h",
    });
    assert.equal(status, 201, JSON.stringify(body));
    return String(body["token"]);
  };
  let clones = 0;
  const git = async (...args: string[]) => run("git", args, { env: gitEnvironment(), cwd: folder.path });
  const clone = async (token: string): Promise<{ code: number; stderr: string; path: string }> => {
    const path = join(folder.path, `clone-${++clones}`);
    const url = `${svc.url.replace("://", `://x:${token}@`)}/ada/notes.git`;
    return { ...(await git("clone", "--quiet", url, path)), path };
  };

  it("a login with an account of Gitea gives a session; admins are admins", async () => {
    const { body } = await api("GET", "/api/session");
    assert.deepEqual([body["username"], body["role"], body["account"]], ["ada", "admin", "connected"]);
  });

  it("a credential is renewed with Gitea's refresh token; a refused one: connect again", async () => {
    const callback = "http://127.0.0.1:9/auth/callback";
    const { clientId, clientSecret } = await gitea.createApplication(callback);
    const oauth = new HostOauth({
      host: codeHostFor({ kind: "gitea", url: gitea.url }),
      client: new HostClient(),
      clientId,
      clientSecret: new Secret(clientSecret),
      clock: systemClock,
    });
    const verifier = "v".repeat(43);
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const url = oauth.authorizeUrl({ state: "s", challenge, redirectUri: callback });
    const code = (await gitea.visit(url, "ada")).searchParams.get("code") ?? "";
    const grant = { code, verifier: new Secret(verifier), redirectUri: callback };
    const first = await oauth.exchange(grant);
    assert.equal((await oauth.user(first.accessToken)).login, "ada");
    await assert.rejects(oauth.exchange(grant), { code: "login_refused" });
    assert.ok(first.refreshToken !== undefined && first.expiresAt !== undefined);
    const second = await oauth.refresh(first.refreshToken);
    assert.equal((await oauth.user(second.accessToken)).login, "ada");
    await assert.rejects(oauth.refresh(new Secret("none")), { code: "login_refused" });
    assert.deepEqual(await oauth.organizations(second.accessToken), []);
  });

  it("git: a proxy token clones by cache and pushes with the user's account", async () => {
    await api("POST", "/api/cached-repos", { owner: "ada", name: "notes" });
    const token = await mint("contents:write");
    const first = await clone(token);
    assert.equal(first.code, 0, first.stderr);
    assert.equal((await clone(token)).code, 0);
    const identity = ["-c", "user.name=Ada", "-c", "user.email=ada@tests.example"];
    await git("-C", first.path, ...identity, "commit", "--quiet", "--allow-empty", "-m", "more");
    const pushed = await git("-C", first.path, "push", "--quiet");
    assert.equal(pushed.code, 0, pushed.stderr);
    const reader = await clone(await mint("contents:read"));
    assert.match((await git("-C", reader.path, "log", "--oneline")).stdout, /more/);
    const refused = await git(
      "-C",
      reader.path,
      ...identity,
      "push",
      "--quiet",
      "origin",
      "HEAD:refs/heads/x",
    );
    assert.notEqual(refused.code, 0);
    const metrics = await (await fetch(svc.metricsUrl)).text();
    assert.match(metrics, /svc_cache_fetch_total\{result="hit"\} [1-9]/);
  });

  it("git: a caller without access gets nothing from a filled cache", async () => {
    const bob = await signIn("bob");
    const request = { repository: "ada/notes", scopes: "contents:read", duration: "1h" };
    assert.equal((await api("POST", "/api/tokens", request, bob)).status, 422);
    const { body } = await api("POST", "/api/tokens?check=false", request, bob);
    assert.notEqual((await clone(String(body["token"]))).code, 0);
  });

  it("API: a proxy token reads its repository and writes within its scopes", async () => {
    const token = await mint("contents:read,issues:write");
    const ask = async (method: string, path: string, body?: unknown) =>
      api(method, `/api/v1${path}`, body, token);
    const shown = await ask("GET", "/repos/ada/notes");
    assert.deepEqual([shown.status, shown.body["full_name"]], [200, "ada/notes"], JSON.stringify(shown.body));
    const issue = await ask("POST", "/repos/ada/notes/issues", { title: "found" });
    assert.equal(issue.status, 201, JSON.stringify(issue.body));
    for (const [method, path] of [
      ["DELETE", "/repos/ada/notes"],
      ["GET", "/repos/ada/notes?sudo=bob"],
      ["POST", "/repos/ada/notes/forks"],
      ["POST", "/repos/ada/notes/contents"],
      ["PUT", "/repos/ada/notes/contents/.gitea%2Fworkflows%2Fx.yaml"],
      ["GET", "/repositories/9999"],
      ["GET", "/repos/search"],
      ["GET", "/users/bob"],
    ] as const) {
      assert.equal((await ask(method, path)).status, 403, `${method} ${path}`);
    }
    assert.equal((await ask("GET", "/repos/ada/other")).status, 403);
    assert.equal((await ask("GET", "/admin/users")).status, 403);
    const anonymous = await fetch(`${svc.url}/api/v1/repos/ada/notes`);
    assert.equal(anonymous.status, 404);
  });

  it("API: limited tokens get no timelines and rendered texts with other issues", async () => {
    await gitea.createRepository("ada", "secret", { private: true });
    const { number } = (await gitea.request("POST", "/repos/ada/notes/issues", { title: "seen" })) as {
      number: number;
    };
    const body = `because of ada/notes#${number}`;
    await gitea.request("POST", "/repos/ada/secret/issues", { title: "planted", body });
    const timeline = `/repos/ada/notes/issues/${number}/timeline`;
    assert.match(JSON.stringify(await gitea.request("GET", timeline)), /planted/, "else nothing is tested");
    const token = await mint("issues:write");
    for (const [method, path, sent] of [
      ["GET", timeline, undefined],
      ["POST", "/markdown", { Text: "ada/secret#1", Mode: "gfm", Context: "/ada/secret" }],
      ["POST", "/markup", { Text: "ada/secret#1", Mode: "comment", Context: "/ada/secret" }],
    ] as const) {
      const answer = await api(method, `/api/v1${path}`, sent, token);
      assert.equal(answer.status, 403, path);
      assert.match(String(answer.body["message"]), /other repositories/);
    }
  });

  it("a Gitea without apps reports that agent tokens need another code host", async () => {
    const request = { repository: "ada/notes", scopes: "contents:read", duration: "1h", type: "agent" };
    const refused = await api("POST", "/api/tokens", request);
    assert.equal(refused.status, 409);
    assert.match(JSON.stringify(refused), /knows no apps/);
    const app = { app_id: "1", private_key: "x" };
    assert.equal((await api("POST", "/api/apps", app)).status, 422);
  });

  it("Gitea's push event is accepted", async () => {
    const body = JSON.stringify({ ref: "refs/heads/main", repository: { full_name: "ada/notes" } });
    const answer = await fetch(`${svc.url}/hooks/push`, {
      method: "POST",
      headers: {
        "x-gitea-event": "push",
        "x-gitea-signature": createHmac("sha256", HOOK_SECRET).update(body).digest("hex"),
      },
      body,
    });
    assert.equal(answer.status, 202);
  });

  it("after disconnecting, the token reads only public data", async () => {
    const token = await mint("contents:read");
    assert.equal((await api("DELETE", "/api/account")).status, 204);
    assert.notEqual((await clone(token)).code, 0);
    session = await signIn("ada");
    assert.equal((await clone(token)).code, 0);
  });
});
