import assert from "node:assert/strict";
import { createServer, connect, type Server } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, type Finished } from "@devplat/testkit";
import { startApiStand, type ApiStand } from "./svc-api-stand.ts";

/** A name that only `gh` uses: it is led to the service over a unix socket, so that no TLS and no DNS is needed. */
const HOST = "git.example";

let stand: ApiStand;
let folder: Awaited<ReturnType<typeof tempFolder>>;
let socket: Server;
before(async () => {
  stand = await startApiStand({ SVC_SERVER_BASE_URL: `https://${HOST}` });
  folder = await tempFolder("gh");
  const port = Number(new URL(stand.svc.url).port);
  socket = createServer((client) => {
    const service = connect(port, "127.0.0.1");
    client.pipe(service).pipe(client);
    for (const end of [client, service])
      end.on("error", () => [client, service].forEach((each) => each.destroy()));
  });
  await new Promise<void>((resolve) => socket.listen(join(folder.path, "socket"), resolve));
  await gh("", ["config", "set", "http_unix_socket", join(folder.path, "socket")]);
});
after(async () => {
  socket.close();
  await stand.stop();
  await folder.remove();
});

async function gh(token: string, args: readonly string[]): Promise<Finished> {
  return run("gh", args, {
    env: {
      PATH: process.env["PATH"],
      HOME: folder.path,
      GH_CONFIG_DIR: folder.path,
      GH_HOST: HOST,
      GH_ENTERPRISE_TOKEN: token,
      GH_NO_UPDATE_NOTIFIER: "1",
      NO_COLOR: "1",
    },
  });
}
const REPO = ["-R", `${HOST}/acme/widgets`];

describe("gh with a limited token", () => {
  const rows: [scopes: string, args: string[], output: RegExp][] = [
    ["metadata:read", ["auth", "status", "-h", HOST], /Logged in to git.example as alice/],
    ["metadata:read", ["api", "repos/acme/widgets", "--jq", ".full_name"], /^acme\/widgets$/m],
    ["contents:read", ["repo", "view", `${HOST}/acme/widgets`], /name:\s+acme\/widgets/],
    ["pull_requests:read", ["pr", "list", ...REPO], /The first of acme\/widgets/],
    [
      "pull_requests:read,contents:read,checks:read,statuses:read",
      ["pr", "view", "1", ...REPO],
      /title:\s+The first/,
    ],
    [
      "pull_requests:read,contents:read,checks:read,statuses:read",
      ["pr", "status", ...REPO],
      /Relevant pull requests/,
    ],
    ["issues:read", ["issue", "list", ...REPO], /The first of acme\/widgets/],
    ["issues:read,pull_requests:read", ["issue", "view", "1", ...REPO], /title:\s+The first/],
    ["issues:read", ["issue", "status", ...REPO], /Relevant issues/],
    ["issues:write", ["issue", "create", ...REPO, "-t", "new", "-b", "text"], /issues\/2/],
  ];
  for (const [scopes, args, output] of rows) {
    it(`gh ${args.slice(0, 2).join(" ")} works with ${scopes}`, async () => {
      const done = await gh(await stand.mint(scopes), args);
      assert.equal(done.code, 0, done.stderr);
      // auth status reports on standard error.
      assert.match(done.stdout + done.stderr, output);
    });
  }

  it("gh auth status shows no scopes of the credential behind the token [svc 10.5]", async () => {
    const headers = { "content-type": "application/json", "X-OAuth-Scopes": "admin:org, delete_repo" };
    stand.codeHost.inject({ path: /^\/api\/v3\/?$/, times: 1 }, { status: 200, headers, body: "{}" });
    const done = await gh(await stand.mint("metadata:read"), ["auth", "status", "-h", HOST]);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout + done.stderr, /Logged in to git.example as alice/);
    assert.doesNotMatch(done.stdout + done.stderr, /admin:org|delete_repo|missing/);
  });

  it("gh prints which scope is missing, and that the token is not for a repository", async () => {
    const token = await stand.mint("metadata:read");
    assert.match((await gh(token, ["issue", "list", ...REPO])).stderr, /lacks the scope issues:read/);
    assert.match(
      (await gh(token, ["issue", "list", "-R", `${HOST}/acme/secret`])).stderr,
      /not for acme\/secret/,
    );
  });
});
