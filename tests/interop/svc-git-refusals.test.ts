import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  gitEnvironment,
  run,
  startCodeHost,
  startSvc,
  type CodeHost,
  type Finished,
  type Svc,
} from "@devplat/testkit";

const HOST_TOKEN = "ghp_plantedHostToken";
const PATH = "/org/r/info/refs?service=git-upload-pack";
/** Requests per minute of the limited token: git without a credential helper needs one for each `ls-remote`. */
const LIMIT = 2;

/** Refusals of `info/refs`, whose text stock git prints. */
describe("refusals of info/refs", { timeout: 120_000 }, () => {
  let host: CodeHost;
  let svc: Svc;
  let admin: string;
  before(async () => {
    host = await startCodeHost();
    host.addUser("alice", HOST_TOKEN);
    await host.addRepository("org", "r", { private: true });
    svc = await startSvc({
      codeHost: host,
      env: { SVC_ENCRYPTION_KEY: "5a".repeat(32), SVC_DEV_HOST_TOKEN: HOST_TOKEN },
    });
    admin = await svc.signIn({ username: "alice", role: "admin", host_token: HOST_TOKEN });
  });
  after(async () => {
    await svc?.stop();
    await host?.stop();
  });

  const mint = (limits: object = {}): Promise<string> =>
    svc.mintToken(admin, { repository: "org/r", scopes: "contents:read", ...limits });
  const withToken = (token: string): string => svc.url.replace("://", `://x-access-token:${token}@`);
  const lsRemote = (url: string): Promise<Finished> =>
    run("git", ["ls-remote", url], { env: gitEnvironment(), timeoutMs: 60_000 });
  /** Status, `Retry-After` and body, as curl gets them. */
  const curl = async (url: string): Promise<string[]> => {
    const form = "\n%{http_code} %header{retry-after}";
    const { stdout } = await run("curl", ["-sS", "-w", form, url], { timeoutMs: 60_000 });
    const [last = "", ...body] = stdout.split("\n").toReversed();
    return [...last.split(" "), body.toReversed().join("\n")];
  };

  it("a token over its rate gets 429 with Retry-After, and git prints the reason", async () => {
    const base = withToken(await mint({ requests_per_minute: LIMIT }));
    for (let sent = 0; ; sent++) {
      const [status, seconds, body] = await curl(`${base}${PATH}`);
      if (status === "200" && sent < 2 * LIMIT) continue;
      assert.equal(status, "429");
      assert.ok(Number(seconds) >= 1 && Number(seconds) <= 60, String(seconds));
      assert.match(String(body), /^The token makes more requests a minute than it may/);
      break;
    }
    const listed = await lsRemote(`${base}/org/r`);
    assert.notEqual(listed.code, 0);
    assert.match(listed.stderr, /remote: The token makes more requests.*\n.*429/s);
  });

  it("a 429 of the code host is relayed with its Retry-After, and git prints its text", async () => {
    const url = withToken(await mint());
    const headers = { "retry-after": "7", "content-type": "text/plain" };
    host.inject({ path: /info\/refs/, times: 2 }, { status: 429, headers, body: "slow down" });
    assert.deepEqual((await curl(`${url}${PATH}`)).slice(0, 2), ["429", "7"]);
    const listed = await lsRemote(`${url}/org/r`);
    assert.match(listed.stderr, /remote: slow down\n.*429/s);
    assert.equal((await lsRemote(`${url}/org/r`)).code, 0);
  });
});
