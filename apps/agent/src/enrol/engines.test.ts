import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { promisify } from "node:util";
import { Secret, type Clock } from "@devplat/base";
import type { Fields } from "@devplat/secret-store";
import type { EnrolmentConfig } from "../config/sections/enrolment-section.ts";
import { workspace, type Workspace } from "../sync/workspace.test-kit.ts";
import { engineFor } from "./engines.ts";
import type { EnrolmentSteps, FormField } from "./engine.ts";
import { sshKeyFields } from "./ssh-key.ts";
import { TestOauthServer } from "./oauth-server.test-kit.ts";

const run = promisify(execFile);
const server = new TestOauthServer();
let w: Workspace;
let now = 1_700_000_000_000;
/** Sleeps take no time, but count. */
const clock: Clock = {
  now: () => now,
  monotonic: () => now,
  sleep: (ms) => {
    now += ms;
    return Promise.resolve();
  },
};
before(async () => {
  w = await workspace();
  await server.start();
});
after(async () => {
  server.stop();
  await w.remove();
});
beforeEach(() => {
  server.seen.length = 0;
  server.announced = undefined;
});

let visited: { url: string; code?: string } | undefined;
let asked: readonly FormField[] = [];
function steps(answers: Record<string, string> = {}): EnrolmentSteps {
  return {
    visit: (step) => (visited = step),
    ask: (_title, fields) => {
      asked = fields;
      return Promise.resolve(
        new Map(Object.entries(answers).map(([name, value]) => [name, new Secret(value)])),
      );
    },
  };
}

const make = (config: unknown) =>
  engineFor({ description: "", scopes: [], ...(config as object) } as unknown as EnrolmentConfig, {
    store: w.store,
    username: "tester",
    clock,
  });
const signal = new AbortController().signal;

describe("the device flow", () => {
  const github = (): unknown => ({
    engine: "github",
    host: server.url,
    client_id: "abc",
    scopes: ["repo", "gist"],
  });

  it("shows the code, waits, slows down when told to, and gives the token [agent 17.9]", async () => {
    server.tokenAnswers = [
      { body: { error: "authorization_pending" } },
      { body: { error: "slow_down" } },
      { body: { access_token: "t0ken", token_type: "bearer", scope: "repo,gist" } },
    ];
    const started = now;
    const fields = await make(github()).run(steps(), signal);
    assert.deepEqual(visited, { url: `${server.url}/login/device`, code: "ABCD-1234" });
    assert.equal(fields.get("access_token"), "t0ken");
    assert.equal(fields.get("expires_at"), undefined);
    assert.equal(now - started, 5000 + 5000 + 10_000, "RFC 8628 section 3.5");
    assert.deepEqual(server.seen[0]?.form, { client_id: "abc", scope: "repo gist" });
    assert.equal(server.seen[1]?.form["grant_type"], "urn:ietf:params:oauth:grant-type:device_code");
  });

  it("keeps its limits of interval and duration against the server's demands", async () => {
    const pending = { body: { error: "authorization_pending" } };
    for (const [interval, waited] of [
      [0, 1000],
      [-1, 5000],
      [1e300, 60_000],
    ] as const) {
      server.deviceAnswer = { interval, expires_in: 1e300 };
      server.tokenAnswers = [pending, { body: { access_token: "t", expires_in: 1e300, refresh_token: "r" } }];
      const started = now;
      const fields = await make(github()).run(steps(), signal);
      assert.equal(now - started, 2 * waited);
      assert.match(fields.get("expires_at") as string, /^2\d{3}-/);
      server.tokenAnswers = [pending];
      const again = now;
      if (interval === 1e300) {
        await assert.rejects(make(github()).run(steps(), signal), /not used in time/);
        assert.equal(now - again, 3_600_000);
      }
    }
    server.deviceAnswer = {};
  });

  it("refuses a code that cannot be typed, or that would move the terminal's cursor", async () => {
    for (const code of [
      "\u001b]0;owned\u0007",
      "a\nOpen http://evil.example",
      "x".repeat(65),
      "\u009b2J",
      "\u202e",
    ]) {
      server.deviceAnswer = { user_code: code };
      await assert.rejects(make(github()).run(steps(), signal), /the sign-in could not be started/);
    }
    server.deviceAnswer = {};
  });

  const refusals: [string, Record<string, unknown>, RegExp][] = [
    ["declined", { error: "access_denied" }, /the request was declined/],
    ["too late", { error: "expired_token" }, /the code was not used in time/],
    [
      "refused",
      { error: "incorrect_client_credentials" },
      /refused: incorrect_client_credentials \(status 200\)/,
    ],
    ["refused with free text", { error: "hunter2 <b>" }, /refused: no reason given/],
  ];
  for (const [name, body, message] of refusals) {
    it(`${name}: says so`, async () => {
      server.tokenAnswers = [{ body }];
      await assert.rejects(make(github()).run(steps(), signal), message);
    });
  }

  it("never approved: ends with the code's life", async () => {
    server.tokenAnswers = [{ body: { error: "authorization_pending" } }];
    const started = now;
    await assert.rejects(make(github()).run(steps(), signal), /not used in time/);
    assert.ok(now - started >= 900_000);
  });

  it("svc: finds its addresses by RFC 8414, and takes none of another server [agent 17.8]", async () => {
    server.tokenAnswers = [{ body: { access_token: "svc-token" } }];
    const engine = make({ engine: "svc", url: `${server.url}/x`, client_id: "agent" });
    assert.equal((await engine.run(steps(), signal)).get("access_token"), "svc-token");
    server.announced = "https://elsewhere.example/device";
    await assert.rejects(engine.run(steps(), signal), /does not tell where its device sign-in is/);
  });

  it("oauth-device: renews after half the lifetime, and keeps a refresh token", async () => {
    const config = {
      engine: "oauth-device",
      device_url: `${server.url}/login/device/code`,
      token_url: `${server.url}/login/oauth/access_token`,
      client_id: "abc",
      audience: "api",
    };
    const engine = make(config);
    server.tokenAnswers = [{ body: { access_token: "one", refresh_token: "r1", expires_in: 3600 } }];
    const held = await engine.run(steps(), signal);
    assert.equal(server.seen[0]?.form["audience"], "api");
    assert.equal(engine.refreshAt?.(held), now + 1800_000);
    server.tokenAnswers = [{ body: { access_token: "two", expires_in: 3600 } }];
    const renewed = await engine.refresh?.(held, signal);
    assert.equal(renewed?.get("access_token"), "two");
    assert.equal(renewed?.get("refresh_token"), undefined, "merging leaves the stored one");
    assert.equal(server.seen.at(-1)?.form["refresh_token"], "r1");
    assert.equal(engine.refreshAt?.(new Map([["access_token", "x"]])), undefined);
  });

  it("jfrog (a stub of its web login): shows the last characters of the session [agent 17.12]", async () => {
    server.tokenAnswers = [{ status: 400, body: {} }, { body: { access_token: "jf" } }];
    const fields = await make({ engine: "jfrog", url: server.url }).run(steps(), signal);
    assert.equal(fields.get("access_token"), "jf");
    assert.equal(server.seen[0]?.form["session"]?.slice(-4), visited?.code);
  });
});

function textOf(fields: Fields, name: string): string {
  const value = fields.get(name);
  return typeof value === "string" ? value : assert.fail(`no text in ${name}`);
}

describe("databricks (a stub of a workspace's endpoints)", () => {
  /** The redirect that the vendor's own command line has registered. */
  const REDIRECT = "http://127.0.0.1:8020/callback";

  it("signs in with the workspace's public client, and returns to that client's port [agent 17.11]", async (t) => {
    server.tokenAnswers = [{ body: { access_token: "t0ken", refresh_token: "again", expires_in: 3600 } }];
    const ended = new AbortController();
    const shown = Promise.withResolvers<URL>();
    const engine = make({ engine: "databricks", host: `${server.url}/` });
    const done = engine.run({ ...steps(), visit: ({ url }) => shown.resolve(new URL(url)) }, ended.signal);
    const first = await Promise.race([shown.promise, done.catch((error: unknown) => error)]);
    if (!(first instanceof URL)) {
      // Somebody on this host has the port: then this is what a user is told.
      assert.match(String(first), /cannot wait for the browser on port 8020 \(EADDRINUSE\)/);
      t.diagnostic("port 8020 is in use");
      return;
    }
    assert.equal(first.origin + first.pathname, `${server.url}/oidc/v1/authorize`);
    const sent = Object.fromEntries(first.searchParams);
    assert.deepEqual(
      [sent["client_id"], sent["scope"], sent["redirect_uri"], sent["code_challenge_method"]],
      ["databricks-cli", "all-apis offline_access", REDIRECT, "S256"],
    );
    await (await fetch(`${REDIRECT}?code=c0de&state=${sent["state"]}`)).text();
    const fields = await done;
    assert.deepEqual([fields.get("access_token"), fields.get("refresh_token")], ["t0ken", "again"]);
    assert.deepEqual([server.seen[0]?.path, server.seen[0]?.form["code"]], ["/oidc/v1/token", "c0de"]);
  });
});

describe("the ssh engine", () => {
  it("makes a key that ssh-keygen opens with its passphrase only [agent 17.5]", async () => {
    const folder = await mkdtemp(join(tmpdir(), "agent-ssh-"));
    try {
      const config = { engine: "ssh", passphrase: "required", comment: "ada@host" };
      const fields = await make(config).run(steps({ passphrase: "correct horse" }), signal);
      const file = join(folder, "key");
      await writeFile(file, textOf(fields, "private_key"), { mode: 0o600 });
      const { stdout } = await run("ssh-keygen", ["-y", "-P", "correct horse", "-f", file]);
      assert.equal(stdout, fields.get("public_key"));
      await assert.rejects(run("ssh-keygen", ["-y", "-P", "wrong", "-f", file]));
      const { stdout: shown } = await run("ssh-keygen", ["-l", "-f", file]);
      assert.ok(shown.includes(textOf(fields, "fingerprint")));
      assert.ok(!JSON.stringify([...fields]).includes("correct horse"));
      const open = await sshKeyFields("", "plain", new AbortController().signal);
      await writeFile(file, textOf(open, "private_key"), { mode: 0o600 });
      assert.equal((await run("ssh-keygen", ["-y", "-P", "", "-f", file])).stdout, open.get("public_key"));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("required, recommended, unsafe: what it asks for and takes [agent 17.5]", async () => {
    const ask = async (passphrase: string): Promise<FormField | undefined> => {
      asked = [];
      await make({ engine: "ssh", passphrase, comment: "" }).run(
        steps({ passphrase: "long enough" }),
        signal,
      );
      return asked[0];
    };
    const required = await ask("required");
    assert.match(required?.fault("") ?? "", /at least 8/);
    assert.match(required?.fault("short") ?? "", /at least 8/);
    assert.equal(required?.confirm, true);
    assert.equal((await ask("recommended"))?.fault(""), undefined);
    assert.equal(await ask("unsafe"), undefined);
  });
});

describe("the prompt engine", () => {
  it("checks the form of values, and leaves out optional ones that are empty [agent 17.6]", async () => {
    const fields = [
      { name: "user", help: "Your name", secret: false, optional: false, pattern: "[a-z]+" },
      { name: "note", help: "", secret: true, optional: true },
    ];
    const stored = await make({ engine: "prompt", fields }).run(steps({ user: "ada", note: "" }), signal);
    assert.deepEqual([...stored], [["user", "ada"]]);
    assert.match(asked[0]?.fault("hunter2!") ?? "", /^user does not have the form/);
    assert.match(asked[0]?.fault("") ?? "", /needed/);
    assert.equal(asked[1]?.fault(""), undefined);
  });
});

describe("the copy engine", () => {
  it("copies all fields, or renders the configured ones [agent 17.4]", async () => {
    await w.put("shared/x", { user: "ada", port: { number: "443" } });
    const all = await make({ engine: "copy", from: "shared/x" }).run(steps(), signal);
    assert.deepEqual(
      [...all],
      [
        ["user", "ada"],
        ["port", { number: "443" }],
      ],
    );
    const rendered = make({
      engine: "copy",
      from: "shared/x",
      fields: { url: "https://{{ .user }}:{{ .port }}/" },
    });
    assert.deepEqual([...(await rendered.run(steps(), signal))], [["url", "https://ada:443/"]]);
  });

  it("says what is missing", async () => {
    await assert.rejects(
      make({ engine: "copy", from: "no/such" }).run(steps(), signal),
      /nothing is stored under no\/such/,
    );
    const broken = make({ engine: "copy", from: "shared/x", fields: { a: "{{ .nothing }}" } });
    await assert.rejects(broken.run(steps(), signal), /field a: /);
  });
});
