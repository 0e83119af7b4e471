import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { gitEnvironment, run } from "@devplat/testkit";
import { STORED, startApiStand, type ApiStand } from "./svc-api-stand.ts";

const JSON_TYPE = { "content-type": "application/json" };
const LFS_TYPE = "application/vnd.git-lfs+json";
const OTP = "Must specify two-factor authentication OTP code.";
const CONNECT = /connect the account again at/;
const ABOUT_CREDENTIAL = /^The code host does not take the stored credential of alice any more: connect/;

let stand: ApiStand;
let token: string;
before(async () => {
  stand = await startApiStand();
  token = await stand.mint("contents:write");
});
after(() => stand.stop());

const basic = (): string => `Basic ${Buffer.from(`x:${token}`).toString("base64")}`;
const message = async (answer: Response): Promise<string> =>
  String(((await answer.json()) as { message?: unknown }).message);
const unauthorized = (path: RegExp, headers: Record<string, string>, body: string | Buffer): void => {
  stand.codeHost.clearFaults();
  stand.codeHost.inject({ path }, { status: 401, headers, body });
};

describe("a 401 of the code host to the credential behind a token", () => {
  it("of the API with another cause is 403 with the code host's message first [svc 10.7]", async () => {
    unauthorized(
      /\/user$/,
      { ...JSON_TYPE, "X-GitHub-OTP": "required; app" },
      JSON.stringify({ message: OTP }),
    );
    const answer = await stand.ask(token, "GET", "/api/v3/user");
    assert.equal(answer.status, 403);
    const text = await message(answer);
    assert.ok(text.startsWith(`The code host says: ${OTP}; a one-time password is required`), text);
    assert.match(text, CONNECT);
  });

  it("of the API in gzip is read too", async () => {
    const body = gzipSync(JSON.stringify({ message: "SSO session needed" }));
    unauthorized(/\/user$/, { ...JSON_TYPE, "content-encoding": "gzip" }, body);
    assert.match(await message(await stand.ask(token, "GET", "/api/v3/user")), /says: SSO session needed/);
  });

  it("of the API about the credential has the next step first", async () => {
    unauthorized(/\/user$/, JSON_TYPE, JSON.stringify({ message: "Bad credentials" }));
    const text = await message(await stand.ask(token, "GET", "/api/v3/user"));
    assert.match(text, ABOUT_CREDENTIAL);
    assert.match(text, /the code host says: Bad credentials/);
  });

  it("of the API without a message has the next step", async () => {
    for (const [headers, body] of [
      [JSON_TYPE, "{}"],
      [{ "content-type": "text/html" }, "<p>Sign in</p>"],
      [{ ...JSON_TYPE, "content-encoding": "gzip" }, "broken"],
    ] as const) {
      unauthorized(/\/user$/, headers, body);
      const text = await message(await stand.ask(token, "GET", "/api/v3/user"));
      assert.match(text, ABOUT_CREDENTIAL);
      assert.doesNotMatch(text, /code host says/);
    }
  });

  it("never repeats the stored credential, nor control characters", async () => {
    const words = `\u001b[2J${STORED} and ${Buffer.from(`x-access-token:${STORED}`).toString("base64")}`;
    unauthorized(/\/user$/, JSON_TYPE, JSON.stringify({ message: words }));
    const text = await message(await stand.ask(token, "GET", "/api/v3/user"));
    assert.match(text, /code host says/);
    assert.ok(!text.includes(STORED) && !text.includes("\u001b"), text);
    unauthorized(/info\/refs/, { "content-type": "text/plain" }, words);
    const refs = await fetch(`${stand.svc.url}/acme/widgets.git/info/refs?service=git-upload-pack`, {
      headers: { authorization: basic() },
    });
    const shown = await refs.text();
    assert.ok(!/[A-Za-z0-9+/]{24}/.test(shown) && !shown.includes(STORED), shown);
  });

  it("of a git route reaches the user of git, with the code host's message", async () => {
    unauthorized(/info\/refs/, { "content-type": "text/plain" }, "The key of this deploy slot is locked");
    // As a check-out action does; otherwise git asks without a credential first.
    const header = `http.extraHeader=Authorization: ${basic()}`;
    const args = ["-c", header, "ls-remote", `${stand.svc.url}/acme/widgets.git`];
    const done = await run("git", args, { env: gitEnvironment() });
    assert.notEqual(done.code, 0);
    assert.match(done.stderr, /The code host says: The key of this deploy slot is locked/);
    assert.match(done.stderr, CONNECT);
  });

  it("of an LFS lock is an error for git-lfs, with the code host's message", async () => {
    unauthorized(
      /locks/,
      { "content-type": LFS_TYPE },
      JSON.stringify({ message: "You must have push access" }),
    );
    const answer = await fetch(`${stand.svc.url}/acme/widgets.git/info/lfs/locks/verify`, {
      method: "POST",
      headers: { authorization: basic(), accept: LFS_TYPE, "content-type": LFS_TYPE },
      body: "{}",
    });
    assert.deepEqual([answer.status, answer.headers.get("content-type")], [403, LFS_TYPE]);
    assert.match(await message(answer), /^The code host says: You must have push access/);
  });

  it("of an LFS batch has the message too", async () => {
    unauthorized(/batch/, { "content-type": LFS_TYPE }, JSON.stringify({ message: "Storage is locked" }));
    const answer = await fetch(`${stand.svc.url}/acme/widgets.git/info/lfs/objects/batch`, {
      method: "POST",
      headers: { authorization: basic(), "content-type": LFS_TYPE },
      body: JSON.stringify({ operation: "download", objects: [] }),
    });
    assert.equal(answer.status, 403);
    assert.match(await answer.text(), /^The code host says: Storage is locked/);
  });

  it("shows the message of a Bearer challenge where the body has none", async () => {
    const challenge = `Bearer realm="x", error="insufficient_scope", error_description="needs the scope repo"`;
    unauthorized(/\/user$/, { ...JSON_TYPE, "www-authenticate": challenge }, "{}");
    const text = await message(await stand.ask(token, "GET", "/api/v3/user"));
    assert.match(text, /says: needs the scope repo/);
  });
});
