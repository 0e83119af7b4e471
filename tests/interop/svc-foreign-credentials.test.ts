import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startApiStand, STORED, type ApiStand } from "./svc-api-stand.ts";

const BLOCKED = "ghp_a-personal-token";

describe("policy for foreign credentials", () => {
  let stand: ApiStand;
  before(async () => {
    stand = await startApiStand({
      SVC_BORDER_BLOCK_TOKEN_PREFIXES: "ghp_,github_pat_",
      SVC_BORDER_BLOCK_ANONYMOUS_GIT: "true",
    });
    stand.codeHost.addUser("mallory", BLOCKED);
  });
  after(async () => stand.stop());

  const repository = "/api/v3/repos/acme/widgets";
  const basic = `Basic ${Buffer.from(`x:${BLOCKED}`).toString("base64")}`;
  const places: [name: string, path: string, headers?: Record<string, string>][] = [
    ["Bearer", repository, { authorization: `Bearer ${BLOCKED}` }],
    ["Basic", repository, { authorization: basic }],
    ["Basic in another case, with blanks", repository, { authorization: basic.replace("Basic", " bAsIc  ") }],
    ["no scheme", repository, { authorization: BLOCKED }],
    ["access_token in the query", `${repository}?access_token=${BLOCKED}`],
    ["an encoded value", `${repository}?token=%67hp_x`],
    ["a value behind a semicolon", `${repository}?a=1;private_token=${BLOCKED}`],
    ["a value behind a blank", `${repository}?private_token=+${BLOCKED}`],
    ["a header of Gitea's", repository, { "x-gitea-otp": BLOCKED }],
    ["a header of GitHub's, as Basic", repository, { "x-github-otp": basic }],
    ["an archive's query", `/acme/widgets/archive/main.tar.gz?token=${BLOCKED}`],
    ["LFS", `/acme/widgets.git/info/lfs/locks?access_token=${BLOCKED}`],
  ];
  for (const [name, path, headers] of places) {
    it(`a blocked credential does not pass by ${name}`, async () => {
      stand.codeHost.resetCalls();
      const answer = await fetch(stand.svc.url + path, headers === undefined ? {} : { headers });
      assert.equal(answer.status, 403);
      assert.match(await answer.text(), /create a token of this service/);
      assert.equal(stand.codeHost.calls.length, 0);
    });
  }

  it("credentials in places that are not forwarded never reach the code host [svc 8.12]", async () => {
    stand.codeHost.resetCalls();
    const answer = await fetch(`${stand.svc.url}${repository}`, {
      headers: {
        authorization: `Bearer ${STORED}`,
        "private-token": BLOCKED,
        "proxy-authorization": basic,
        sudo: "root",
        cookie: `user_session=${BLOCKED}`,
        "x-gitea-token": BLOCKED,
        "x-github-authorization": basic,
      },
    });
    assert.equal(answer.status, 200);
    const calls = JSON.stringify(stand.codeHost.calls);
    assert.ok(!calls.includes(BLOCKED) && !calls.includes(basic));
  });

  it("git with an empty credential header counts as git without a credential", async () => {
    for (const authorization of [undefined, "Basic Og==", "Bearer", "Something else"]) {
      const headers = new Headers(authorization === undefined ? undefined : { authorization });
      const advertisement = "/acme/widgets.git/info/refs?service=git-upload-pack";
      const answer = await fetch(stand.svc.url + advertisement, { headers });
      assert.equal(answer.status, 401, authorization ?? "none");
      assert.match(await answer.text(), /without a credential/);
    }
  });

  it("a proxy token and a credential of another kind pass", async () => {
    const token = await stand.mint("metadata:read");
    assert.equal((await stand.ask(token, "GET", repository)).status, 200);
    assert.equal((await stand.ask(STORED, "GET", `${repository}?per_page=1`)).status, 200);
  });
});
