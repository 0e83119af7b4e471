import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, startVault, tempFolder, until, type TempFolder, type Vault } from "@devplat/testkit";
import { writePolicies } from "./agent-auth-stand.ts";
import { forwardSocket } from "./agent-forward-socket.ts";
import { Home, daemon, webUrl, type RunningAgent } from "./agent-stand.ts";
import { PlainBrowser } from "./agent-web/plain-browser.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** A request over a Unix socket. */
async function ask(socket: string, path: string, ...more: string[]): Promise<Answer> {
  const args = ["--silent", "--unix-socket", socket, "--write-out", "\n%{http_code}", ...more];
  const { stdout } = await run("curl", [...args, `http://localhost${path}`], {});
  const at = stdout.lastIndexOf("\n");
  return {
    status: Number(stdout.slice(at + 1)),
    body: JSON.parse(stdout.slice(0, at)) as Record<string, unknown>,
  };
}

/** The workstation: a daemon with a peer socket. */
class Workstation {
  readonly home: Home;
  readonly #vault: Vault;
  #agent: RunningAgent | undefined;

  constructor(folder: string, vault: Vault) {
    this.#vault = vault;
    const path = `${join(folder, "bin")}:${process.env["PATH"] ?? ""}`;
    this.home = new Home(folder, { XDG_RUNTIME_DIR: folder, PATH: path, DISPLAY: ":none" });
  }

  get api(): string {
    return join(this.home.path, "daemon/api.sock");
  }

  get peer(): string {
    return join(this.home.path, "daemon/peer.sock");
  }

  get agent(): RunningAgent {
    return this.#agent ?? assert.fail();
  }

  /** @param peer keys of `api.peer` @param token undefined: nobody signs in */
  async start(peer: string, token: string | undefined, more = ""): Promise<void> {
    await this.home.configure(
      `store: { address: "${this.#vault.address}", username: ada, token_socket: [] }
api: { enabled: true, peer: { ${peer} } }
${more}`,
    );
    if (token !== undefined) await this.home.write(".daemon-token", token);
    await this.run(token !== undefined);
  }

  async run(signedIn = true): Promise<void> {
    this.#agent = await daemon(this.home, async () => {
      const { body } = await ask(this.api, "/api/v1/status");
      return body["authenticated"] === signedIn && (await ask(this.peer, "/")).status === 404;
    });
  }

  async kill(): Promise<void> {
    process.kill(this.agent.pid ?? 0, "SIGKILL");
    await until(
      async () => (await run("curl", ["--unix-socket", this.api, "http://localhost/"], {})).code === 7,
    );
  }

  lend(): Promise<Answer> {
    return ask(this.peer, "/api/v1/token");
  }

  async token(): Promise<string> {
    const { status, body } = await this.lend();
    assert.equal(status, 200, JSON.stringify(body));
    return String(body["token"]);
  }

  /** `peers.tokens` of the status. */
  async lent(): Promise<{
    lent: unknown[];
    added_policies: string[];
    problem: string | null;
    asking: boolean;
  }> {
    const { body } = await ask(this.api, "/api/v1/status");
    return (body["peers"] as { tokens: Awaited<ReturnType<Workstation["lent"]>> }).tokens;
  }

  async stop(): Promise<void> {
    await this.#agent?.stop();
  }
}

describe("tokens lent over the peer socket", { timeout: TIMEOUT_MS }, () => {
  let vault: Vault;
  let folder: TempFolder;
  let count = 0;
  const stations: Workstation[] = [];
  const forwards: { stop(): Promise<void> }[] = [];
  before(async () => {
    vault = await startVault();
    await writePolicies(vault);
    folder = await tempFolder("agent-lent");
  });
  after(async () => {
    for (const each of [...forwards, ...stations]) await each.stop();
    await vault.stop();
    await folder.remove();
  });

  async function station(): Promise<Workstation> {
    const path = join(folder.path, `w${count++}`);
    await mkdir(path, { mode: 0o700 });
    const made = new Workstation(path, vault);
    stations.push(made);
    return made;
  }

  /** Accessors of all tokens that are alive. */
  async function accessors(): Promise<Set<string>> {
    const { body } = await vault.request("GET", "auth/token/accessors?list=true");
    return new Set((body["data"] as { keys: string[] }).keys);
  }

  async function lookup(token: string): Promise<Record<string, unknown>> {
    return (await vault.request("POST", "auth/token/lookup", { token })).body["data"] as Record<
      string,
      unknown
    >;
  }

  async function isLive(token: string): Promise<boolean> {
    return await lookup(token).then(
      () => true,
      () => false,
    );
  }

  /** The status of a request to the store with a token. */
  async function use(token: string, method: string, path: string, body = ""): Promise<number> {
    const response = await fetch(`${vault.address}/v1/${path}`, {
      method,
      headers: { "X-Vault-Token": token },
      ...(body !== "" && { body }),
    });
    return response.status;
  }

  it("are one child for concurrent requests, and none is left when the daemon ends", async () => {
    const own = await vault.createUserToken("ada", ["user"]);
    const subject = await station();
    await subject.start("", own);
    const earlier = await accessors();
    const [first, second] = await Promise.all([subject.token(), subject.token()]);
    assert.equal(first, second);
    assert.notEqual(first, own);
    const found = await lookup(first ?? "");
    assert.deepEqual([found["explicit_max_ttl"], found["renewable"]], [900, false]);
    assert.equal((await accessors()).size, earlier.size + 1);
    const { lent } = await subject.lent();
    assert.equal((lent as { handouts: number }[])[0]?.handouts, 2);
    const shown = JSON.stringify(await ask(subject.api, "/api/v1/status")) + subject.agent.log();
    for (const secret of [first ?? "", String(found["accessor"])]) assert.ok(!shown.includes(secret));
    await subject.stop();
    assert.deepEqual(await accessors(), earlier);
  });

  it("are revoked when the user signs out, before the daemon's own token is lost", async () => {
    const subject = await station();
    await subject.start("", await vault.createUserToken("ada", ["user"]));
    const earlier = await accessors();
    const child = await subject.token();
    await subject.home.ok("logout");
    await until(
      async () => !(await isLive(child)),
      () => subject.agent.log(),
    );
    assert.deepEqual(await accessors(), earlier);
    assert.equal((await subject.lend()).status, 401);
  });

  it("do not outlive a killed daemon's next start, and their record is unreadable", async () => {
    const subject = await station();
    await subject.start("", await vault.createUserToken("ada", ["user"]));
    const earlier = await accessors();
    const child = await subject.token();
    const record = await readFile(join(subject.home.path, ".local/state/daemon/lent-tokens"), "latin1");
    assert.ok(!record.includes(child));
    await subject.kill();
    assert.ok(await isLive(child));
    await subject.run();
    await until(
      async () => !(await isLive(child)),
      () => subject.agent.log(),
    );
    const next = await subject.token();
    assert.notEqual(next, child);
    await subject.stop();
    assert.deepEqual(await accessors(), earlier);
  });

  it("have only the policies of api.peer.policies", async () => {
    const subject = await station();
    await subject.start("policies: [reader]", await vault.createUserToken("bob", ["user", "reader"]));
    const child = await subject.token();
    assert.deepEqual((await lookup(child))["policies"], ["default", "reader"]);
    await vault.put("users/ada/x", { a: "1" });
    assert.equal(await use(child, "GET", "kv/data/users/ada/x"), 200);
    assert.equal(await use(child, "POST", "kv/data/users/ada/x", '{"data":{"a":"2"}}'), 403);
    assert.equal(await use(child, "POST", "auth/token/create", "{}"), 403);
    await subject.stop();
  });

  it("are refused by policies_strict when the store adds policies; other offers stay", async () => {
    const own = await vault.createUserToken("carol", ["user", "reader"]);
    const entity = String((await lookup(own))["entity_id"]);
    await vault.request("POST", `identity/entity/id/${entity}`, { policies: ["of-entity"] });
    const subject = await station();
    await subject.start("policies: [reader], policies_strict: true", own);
    const earlier = await accessors();
    const { status, body } = await subject.lend();
    assert.deepEqual([status, body["code"]], [403, "token_not_lendable"]);
    assert.match(String(body["detail"]), /the store adds: of-entity/);
    assert.match((await subject.lent()).problem ?? "", /the store adds: of-entity/);
    assert.deepEqual(await accessors(), earlier);
    assert.equal(
      (await ask(subject.peer, "/api/v1/remote/notify", "--data", "level=info&title=t")).body["code"],
      "action_failed",
    );
    await subject.stop();
  });

  it("are refused without the permission and under a batch token", async () => {
    const batch = await vault.request("POST", "auth/token/create", { type: "batch", policies: ["user"] });
    const parents = [
      [await vault.createUserToken("dave"), /does not allow the workstation's token/],
      [String((batch.body["auth"] as Record<string, unknown>)["client_token"]), /of this kind of token/],
    ] as const;
    for (const [own, reason] of parents) {
      const subject = await station();
      await subject.start("", own);
      const { status, body } = await subject.lend();
      assert.deepEqual([status, body["code"]], [403, "token_not_lendable"]);
      assert.match(String(body["detail"]), reason);
      assert.match((await subject.lent()).problem ?? "", reason);
      assert.ok(!JSON.stringify(body).includes(own));
      assert.match(await subject.home.ok("status"), reason);
      await subject.stop();
      await subject.start("lend: own", own);
      assert.equal(await subject.token(), own);
      await subject.stop();
    }
  });

  it("end after token_ttl", async () => {
    const subject = await station();
    await subject.start("token_ttl: 5s", await vault.createUserToken("ada", ["user"]));
    const earlier = await accessors();
    const child = await subject.token();
    await until(
      async () => !(await isLive(child)),
      () => subject.agent.log(),
    );
    assert.deepEqual(await accessors(), earlier);
    assert.deepEqual((await subject.lent()).lent, []);
    await subject.stop();
  });

  /** A host that borrows over the forwarded peer socket of a workstation. */
  async function borrower(from: Workstation): Promise<Home> {
    const home = new Home(join(folder.path, `b${count++}`));
    await home.configure(`store: { address: "${vault.address}", username: ada }\napi: { enabled: true }\n`);
    await mkdir(join(home.path, ".ssh"), { mode: 0o700 });
    forwards.push(await forwardSocket(join(home.path, ".ssh/daemon.laptop.sock"), from.peer));
    return home;
  }

  it("are replaced by the borrower in time, never renewed, and when one is denied", async () => {
    const subject = await station();
    await subject.start("token_ttl: 5s", await vault.createUserToken("ada", ["user"]));
    const remote = await borrower(subject);
    const home = new Home(remote.path, { XDG_RUNTIME_DIR: remote.path });
    const socket = join(home.path, "daemon/api.sock");
    const used = async (): Promise<string> => String((await ask(socket, "/api/v1/token")).body["token"]);
    const agent = await daemon(home, async () => (await ask(socket, "/api/v1/token")).status === 200);
    try {
      const seen = new Set<string>();
      await until(
        async () => {
          const { body } = await ask(socket, "/api/v1/status");
          assert.equal(body["authenticated"], true);
          seen.add(await used());
          return seen.size >= 3;
        },
        () => agent.log(),
      );
      assert.doesNotMatch(agent.log(), /signed out|token renewed/);
      const denied = await used();
      await vault.request("POST", "auth/token/revoke", { token: denied });
      await home.ok("sync");
      await until(
        async () => (await used()) !== denied,
        () => agent.log(),
      );
    } finally {
      await agent.stop();
      await subject.stop();
    }
  });

  it("belong to the borrower's pinned identity, for every kind of parent", async () => {
    const created = await vault.request("POST", "auth/token/create", {
      policies: ["user"],
      display_name: "me",
    });
    for (const own of [
      vault.rootToken,
      String((created.body["auth"] as Record<string, unknown>)["client_token"]),
      await vault.createUserToken("erin", ["user"]),
    ]) {
      const subject = await station();
      await subject.start("", own);
      const remote = await borrower(subject);
      // The host was signed in with the same user's token before, which pins the identity.
      await remote.write(".daemon-token", own);
      assert.match(await remote.ok("status"), /signed in by the token file/);
      await remote.ok("secrets", "list");
      await remote.ok("logout");
      await remote.ok("secrets", "put", "tools/x", "a=1");
      assert.match(await remote.ok("status"), /by a token borrowed from/);
      await subject.stop();
    }
    const stranger = await station();
    await stranger.start("", await vault.createUserToken("mallory", ["user"]));
    const remote = await borrower(stranger);
    await remote.write(".daemon-token", vault.rootToken);
    await remote.ok("secrets", "list");
    await remote.ok("logout");
    const { code, stderr } = await remote.agent(["secrets", "list"]);
    assert.equal(code, 1);
    assert.match(stderr, /belongs to another identity/);
    await stranger.stop();
  });

  const WEB = 'web: { enabled: true, listen: "127.0.0.1:0" }\n';

  /** A browser that is let in to the workstation's pages. */
  async function browserOf(subject: Workstation): Promise<PlainBrowser> {
    const browser = new PlainBrowser(await webUrl(subject.agent));
    const link = new URL((await subject.home.ok("open")).trim());
    await browser.post("/unlock", { code: link.searchParams.get("code") ?? "" });
    assert.equal((await browser.get("/ui/")).status, 200);
    return browser;
  }

  it("wait for the user's consent, which a notification and a page ask for", async () => {
    const subject = await station();
    const notified = join(subject.home.path, "notified");
    await subject.home.write("bin/notify-send", `#!/bin/sh\necho "$@" >> "${notified}"\n`, 0o700);
    await subject.start("ask: first", await vault.createUserToken("ada", ["user"]), WEB);
    const earlier = await accessors();
    const page = await browserOf(subject);
    const remote = await borrower(subject);
    const waiting = remote.agent(["secrets", "list"]);
    await until(async () => /ui\/peer-socket\//.test(await readFile(notified, "utf8")));
    const { body, status } = await subject.lend();
    assert.deepEqual([status, body["code"]], [503, "consent_pending"]);
    assert.deepEqual(await accessors(), earlier, "nothing is granted before the consent");
    assert.equal((await subject.lent()).asking, true);
    assert.equal((await page.post("/ui/peer-socket/", { action: "allow" })).status, 303);
    const { code, stderr } = await waiting;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /waiting for consent on laptop/);
    assert.equal((await readFile(notified, "utf8")).trim().split("\n").length, 2, "one question, two lines");
    // Revoke now: the next request asks again, and a refusal holds.
    const child = await subject.token();
    await page.post("/ui/peer-socket/", { action: "revoke" });
    assert.equal(await isLive(child), false);
    assert.equal((await subject.lend()).status, 503);
    await page.post("/ui/peer-socket/", { action: "refuse" });
    for (let n = 0; n < 2; n++) assert.equal((await subject.lend()).body["code"], "token_not_lendable");
    assert.match((await subject.lent()).problem ?? "", /has refused it/);
    const refused = await remote.agent(["secrets", "list"]);
    assert.match(refused.stderr, /the user of the workstation has refused it/);
    await subject.stop();
    assert.deepEqual(await accessors(), earlier);
  });

  it("wait for an answer by a command where there is no web UI [agent 36.16]", async () => {
    const subject = await station();
    const notified = join(subject.home.path, "notified");
    await subject.home.write("bin/notify-send", `#!/bin/sh\necho "$@" >> "${notified}"\n`, 0o700);
    await subject.start("ask: always", await vault.createUserToken("ada", ["user"]));
    const earlier = await accessors();
    const idle = await subject.home.agent(["peer-socket", "allow"]);
    assert.equal(idle.code, 1);
    assert.match(idle.stderr, /No host waits for this consent/);
    assert.equal((await subject.lend()).body["code"], "consent_pending");
    await until(async () => /agent peer-socket allow/.test(await readFile(notified, "utf8").catch(() => "")));
    assert.match(await subject.home.ok("status"), /A host waits for a token: 'agent peer-socket allow'/);
    assert.deepEqual(await accessors(), earlier, "nothing is granted before the consent");
    assert.match(await subject.home.ok("peer-socket", "allow"), /gets its token when it asks again/);
    const child = await subject.token();
    assert.equal(await isLive(child), true);
    await subject.home.ok("peer-socket", "revoke");
    assert.equal(await isLive(child), false);
    assert.equal((await subject.lend()).body["code"], "consent_pending");
    assert.deepEqual(JSON.parse(await subject.home.ok("peer-socket", "refuse", "--json")), {
      outcome: "refused",
    });
    assert.equal((await subject.lend()).body["code"], "token_not_lendable");
    await subject.stop();
    assert.deepEqual(await accessors(), earlier);
  });

  it("are revoked by the sign-out of the web UI while others ask", async () => {
    const subject = await station();
    await subject.start("", await vault.createUserToken("ada", ["user"]), WEB);
    const earlier = await accessors();
    const page = await browserOf(subject);
    await subject.token();
    const over = new AbortController();
    const asking = (async () => {
      while (!over.signal.aborted) await subject.lend();
    })();
    assert.equal((await page.post("/ui/sign-out")).location, "/");
    over.abort();
    await asking;
    assert.equal((await subject.lend()).status, 401);
    assert.deepEqual(await accessors(), earlier);
    await subject.stop();
  });

  it("are checked by agent doctor, which says what to do without the permission", async () => {
    for (const [name, policies, line] of [
      ["frank", ["user"], /lent tokens: the store allows auth\/token\/create/],
      ["grace", ["reader"], /auth\/token\/create.*Add to a policy: path "auth\/token\/create"/],
    ] as const) {
      const subject = await station();
      await subject.start("", await vault.createUserToken(name, policies));
      assert.match((await subject.home.agent(["doctor"])).stdout, line);
      await subject.stop();
    }
  });
});
