import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  gitEnvironment,
  NATIVE_CLIENT_ID,
  repositories,
  run,
  runAtTerminal,
  startCodeHost,
  startOidcProvider,
  startVault,
  tempFolder,
  until,
  type OidcProvider,
  type TempFolder,
  type Vault,
} from "@devplat/testkit";
import { TestOauthServer } from "../../apps/agent/src/enrol/oauth-server.test-kit.ts";
import { Home, daemon } from "./agent-stand.ts";

const folders: TempFolder[] = [];
const server = new TestOauthServer();
let provider: OidcProvider;
let vault: Vault;
before(async () => {
  await server.start();
  provider = await startOidcProvider(["http://127.0.0.1:1/callback"]);
  vault = await startVault();
});
after(async () => {
  server.stop();
  await provider.stop();
  await vault.stop();
  for (const folder of folders) await folder.remove();
});

async function home(text: string, store = "{driver: embedded}"): Promise<Home> {
  const folder = await tempFolder("agent-home");
  folders.push(folder);
  const place = new Home(folder.path);
  await place.configure(`store: ${store}\n${text}`);
  return place;
}

/** Runs an enrolment on the command line and does what it asks for in a browser. */
async function enrol(
  place: Home,
  key: string,
  visit: (shown: string) => Promise<unknown>,
  wanted = /^Open (\S+)\n/m,
): Promise<number | null> {
  const child = spawn(AGENT_LAUNCHER, ["enrol", "run", key], {
    env: place.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  let visited: Promise<unknown> | undefined;
  child.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    const url = wanted.exec(said)?.[1];
    if (url !== undefined) visited ??= visit(url);
  });
  await once(child, "close");
  await visited;
  assert.ok(visited !== undefined, said);
  return child.exitCode;
}

describe("an enrolment by oauth-pkce against a real OpenID provider", () => {
  const config = (): string => `enrolments:
  tools/api:
    engine: oauth-pkce
    authorize_url: ${provider.issuer}/auth
    token_url: ${provider.issuer}/token
    client_id: ${NATIVE_CLIENT_ID}
    scopes: [openid]
`;
  it("stores the token, and is complete then [agent 17.10]", async () => {
    const place = await home(config());
    assert.match(await place.ok("enrol", "list"), /tools\/api +oauth-pkce +not started/);
    assert.equal(await enrol(place, "tools/api", (url) => provider.visit(url, "ada")), 0);
    assert.match(await place.ok("secrets", "get", "tools/api"), /access_token/);
    assert.match(await place.ok("enrol", "list"), /tools\/api +oauth-pkce +enrolled/);
    const again = await place.agent(["enrol", "run", "tools/api"]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /is complete/);
  });

  it("an answer with a foreign state is not taken, and a declined one fails", async () => {
    const place = await home(config());
    const forged = async (url: string): Promise<void> => {
      const back = new URL(new URL(url).searchParams.get("redirect_uri") ?? "");
      back.search = "?code=x&state=forged";
      assert.equal((await fetch(back)).status, 400);
      await provider.visit(url, "ada", { decline: true });
    };
    assert.equal(await enrol(place, "tools/api", forged), 1);
    assert.equal((await place.agent(["secrets", "get", "tools/api"])).code, 1);
  });
});

describe("agent enrol", () => {
  it("github's device flow (a stub of its two endpoints), skip and reset [agent 1.3 5.21 17.2]", async () => {
    const place = await home(
      `enrolments: {tools/hub: {engine: github, host: "${server.url}", client_id: abc}}\n`,
    );
    server.tokenAnswers = [{ body: { access_token: "planted-token", token_type: "bearer" } }];
    await place.ok("enrol", "skip", "tools/hub");
    assert.match(await place.ok("enrol", "list"), /tools\/hub +github +skipped/);
    assert.match(await place.ok("status"), /^Enrolments: +all dealt with$/m);
    await place.ok("enrol", "reset", "tools/hub");
    assert.match(await place.ok("status"), /^Enrolments: +tools\/hub \(not started\)$/m);
    const { code, stdout, stderr } = await place.agent(["enrol", "run", "tools/hub"]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Open http:\S+\/login\/device\nand enter the code ABCD-1234/);
    assert.doesNotMatch(stdout + stderr, /planted-token/);
    assert.equal(await place.ok("secrets", "get", "tools/hub", "access_token"), "planted-token\n");
    await place.ok("enrol", "reset", "tools/hub");
    assert.match(await place.ok("enrol", "list"), /tools\/hub +github +not started/);
    assert.equal(await place.ok("secrets", "get", "tools/hub", "access_token"), "planted-token\n");
    for (const action of ["skip", "reset"]) {
      const unknown = await place.agent(["--dry-run", "enrol", action, "nope"]);
      assert.equal(unknown.code, 1, "in a dry run too");
    }
  });

  it("github: the token clones over git-credential, and is renewed at half its life [agent 17.7]", async () => {
    const host = await startCodeHost();
    try {
      await host.addRepository("acme", "secret", { private: true, build: repositories.linear });
      host.addUser("ada", "unused-token", { repositories: ["acme/secret"] });
      host.oauth.settings.expiresIn = 3600;
      const place =
        await home(`enrolments: {tools/hub: {engine: github, host: "${host.url}", client_id: "${host.oauth.clientId}"}}
git_credentials: [{host: "${host.host}", key: tools/hub, username_field: none, password_field: access_token}]
`);
      const approve = async (userCode: string): Promise<void> =>
        assert.ok(host.oauth.devices.decide(userCode, { login: "ada" }));
      assert.equal(await enrol(place, "tools/hub", approve, /enter the code (\S+)\n/), 0);
      const [first = ""] = host.oauth.issued;
      assert.equal(await place.ok("secrets", "get", "tools/hub", "access_token"), `${first}\n`);
      const asked = await run(
        "git",
        ["ls-remote", `${host.url.replace("://", `://x:${first}@`)}/acme/secret.git`],
        {
          env: gitEnvironment(),
        },
      );
      assert.equal(asked.code, 0, asked.stderr);

      // Past half of its life: the next look renews it, without anybody.
      const [issued, expires] = [-3_000_000, 600_000].map((ms) => new Date(Date.now() + ms).toISOString());
      await place.ok(
        "secrets",
        "put",
        "tools/hub",
        `expires_at=${expires}`,
        `issued_at=${issued}`,
        "--force",
      );
      const running = await daemon(place, async () => host.oauth.issued.length === 2);
      await until(
        async () =>
          (await place.ok("secrets", "get", "tools/hub", "access_token")).trim() === host.oauth.issued[1],
        () => running.log(),
      );
      await running.stop();
      assert.equal(host.oauth.isLive(first), false);
      assert.doesNotMatch(running.log(), /planted/);
    } finally {
      await host.stop();
    }
  });

  it("github: a declined code says so", async () => {
    const host = await startCodeHost();
    try {
      const place = await home(
        `enrolments: {hub: {engine: github, host: "${host.url}", client_id: "${host.oauth.clientId}"}}\n`,
      );
      const decline = async (userCode: string): Promise<void> =>
        void host.oauth.devices.decide(userCode, "denied");
      assert.equal(await enrol(place, "hub", decline, /enter the code (\S+)\n/), 1);
      assert.match(await place.ok("enrol", "list"), /hub +github +not started/);
    } finally {
      await host.stop();
    }
  });

  it("what needs a terminal says so without one", async () => {
    const place = await home(
      "enrolments: {tools/key: {engine: ssh}, open: {engine: ssh, passphrase: unsafe}}\n",
    );
    const { code, stderr } = await place.agent(["enrol", "run", "tools/key"]);
    assert.equal(code, 1);
    assert.match(stderr, /there is no terminal to ask on/);
    await place.ok("enrol", "run", "open");
    assert.match(await place.ok("secrets", "get", "open", "public_key"), /^ssh-ed25519 /);
  });

  it("a secret of an enrolment is not for 'agent secrets' without --force [agent 5.18]", async () => {
    const place = await home("enrolments: {tools/key: {engine: ssh}}\n");
    const { code, stderr } = await place.agent(["secrets", "put", "tools/key", "a=b"]);
    assert.equal(code, 1);
    assert.match(stderr, /belongs to an enrolment/);
    await place.ok("secrets", "put", "tools/key", "a=b", "--force");
  });
});

describe("agent run with credentials that are missing", () => {
  const TEXT = `enrolments:
  machine/key: {engine: ssh, passphrase: unsafe}
  tools/a: {engine: prompt, description: Token of A, fields: [{name: token}]}
  tools/b: {engine: prompt, description: Token of B, fields: [{name: token}]}
rules:
  - {name: key, key: machine/key, target: {path: ~/key.yaml, format: yaml}}
  - {name: a, key: tools/a, target: {path: ~/a.yaml, format: yaml}}
  - {name: b, key: tools/b, target: {path: ~/b.yaml, format: yaml}}
`;

  it("runs what needs nobody once, and logs what is missing and where to get it [agent 1.3]", async () => {
    const place = await home(TEXT);
    const holds = async (): Promise<boolean> => (await place.read("key.yaml")).includes("PRIVATE KEY");
    const named = /"tools\/a","tools\/b".*agent enrol run KEY.*credentials are missing/;
    let running = await daemon(place, holds);
    try {
      await until(
        async () => named.test(running.log()),
        () => running.log(),
      );
    } finally {
      await running.stop();
    }
    const first = await place.ok("secrets", "get", "machine/key", "fingerprint");
    running = await daemon(place, async () => true);
    try {
      await until(
        async () => named.test(running.log()),
        () => running.log(),
      );
    } finally {
      await running.stop();
    }
    assert.equal(await place.ok("secrets", "get", "machine/key", "fingerprint"), first);
  });

  it("run --once gets what needs nobody before its cycle, and names the others", async () => {
    const place = await home(TEXT);
    const { code, stdout, stderr } = await place.agent(["run", "--once"]);
    assert.equal(code, 0, stderr);
    assert.match(await place.read("key.yaml"), /PRIVATE KEY/);
    assert.match(stdout, /^1 changed, .*2 missing: tools\/a \(rule a\), tools\/b \(rule b\)/);
    assert.match(stderr, /"tools\/a","tools\/b".*agent enrol run KEY.*credentials are missing/);
    const first = await place.ok("secrets", "get", "machine/key", "fingerprint");
    assert.match((await place.agent(["run", "--once"])).stdout, /^0 changed, 1 unchanged/);
    assert.equal(await place.ok("secrets", "get", "machine/key", "fingerprint"), first, "made once");
  });

  it("asks at a terminal for the others, one after the other, while rules are synced [agent 1.3]", async () => {
    const place = await home(TEXT);
    const file = (name: string): Promise<string> => place.read(name).catch(() => "");
    const session = await runAtTerminal(AGENT_LAUNCHER, ["run"], {
      env: place.env,
      answers: [
        [
          /Token of A[^]*token: /,
          async () => {
            await until(async () => (await file("key.yaml")).includes("PRIVATE KEY"));
            return "value-of-a";
          },
        ],
        [
          /Token of B[^]*token: /,
          async () => {
            await until(async () => (await file("a.yaml")) === "token: value-of-a\n");
            return "value-of-b";
          },
        ],
        [
          /stored tools\/b/,
          async () => {
            await until(async () => (await file("b.yaml")) === "token: value-of-b\n");
            return "\x03";
          },
        ],
      ],
    });
    assert.equal(await file("b.yaml"), "token: value-of-b\n", session.shown);
    assert.doesNotMatch(session.shown, /value-of/);
  });
});

describe("a copy enrolment in the running daemon", () => {
  it("mirrors without anybody, and a rule that uses it is synced [agent 1.3]", async () => {
    const text = `enrolments: {mine/copy: {engine: copy, from: shared/x, fields: {token: "{{ .token }}!"}}}
rules: [{name: a, key: mine/copy, target: {path: ~/a.yaml, format: yaml}}]
sync: {interval: 10s}
`;
    const place = await home(text, `{address: "${vault.address}", username: ada}`);
    await place.write(".daemon-token", vault.rootToken);
    await vault.put("users/ada/shared/x", { token: "one" });
    const holds = async (): Promise<boolean> => (await place.read("a.yaml")) === "token: one!\n";
    const running = await daemon(place, holds);
    try {
      await vault.put("users/ada/shared/x", { token: "two" });
      const changed = async (): Promise<boolean> => (await place.read("a.yaml")) === "token: two!\n";
      for (let i = 0; i < 2 && !(await changed()); i++)
        await until(changed, () => running.log()).catch(() => undefined);
      assert.ok(await changed(), running.log());
    } finally {
      await running.stop();
    }
  });
});
