import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startGitea } from "./gitea.ts";

describe("Gitea", () => {
  it("has users, repositories and a login by OAuth", { timeout: 240_000 }, async () => {
    const gitea = await startGitea();
    const { token } = await gitea.createUser("ada");
    await gitea.createRepository("ada", "notes", { private: true });
    const headers = { authorization: `token ${token}` };
    assert.equal((await fetch(`${gitea.apiUrl}/repos/ada/notes`, { headers })).status, 200);
    assert.equal((await fetch(`${gitea.apiUrl}/repos/ada/notes`)).status, 404);

    const callback = "http://127.0.0.1:9/callback";
    const { clientId, clientSecret } = await gitea.createApplication(callback);
    const url = new URL(`${gitea.url}/login/oauth/authorize`);
    url.search = new URLSearchParams({
      client_id: clientId,
      redirect_uri: callback,
      response_type: "code",
      state: "s",
    }).toString();
    const back = await gitea.visit(url.href, "ada");
    assert.equal(back.searchParams.get("state"), "s");
    const answer = await fetch(`${gitea.url}/login/oauth/access_token`, {
      method: "POST",
      body: new URLSearchParams({
        client_id: clientId,
        client_secret: clientSecret,
        grant_type: "authorization_code",
        code: back.searchParams.get("code") ?? "",
        redirect_uri: callback,
      }),
    });
    const { access_token: access } = (await answer.json()) as { access_token: string };
    const who = await fetch(`${gitea.apiUrl}/user`, { headers: { authorization: `token ${access}` } });
    assert.equal(((await who.json()) as { login: string }).login, "ada");
    await gitea.stop();
  });
});
