import assert from "node:assert/strict";
import { once } from "node:events";
import { stat, utimes } from "node:fs/promises";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, startVault, type Vault } from "@devplat/testkit";
import { BRAND } from "../../apps/agent/src/brand.ts";
import suppression from "../../apps/agent/src/suppression.cjs";
import { AgentHome, writePolicies } from "./agent-auth-stand.ts";

const MARKER = ".local/state/daemon/login-check-suppress";
const HOUR_S = 3600;
const homes: AgentHome[] = [];
let vault: Vault;

before(async () => {
  vault = await startVault();
  await writePolicies(vault);
});
after(() => Promise.all([vault.stop(), ...homes.map((each) => each.remove())]));

async function home(store: Record<string, unknown> = {}): Promise<AgentHome> {
  const created = await AgentHome.create({ address: vault.address, username: "ada", ...store });
  homes.push(created);
  return created;
}

/** Sets the marker's age; negative is in the future. */
async function age(place: AgentHome, seconds: number): Promise<void> {
  const path = await place.write(MARKER, "");
  const time = Date.now() / 1000 - seconds;
  await utimes(path, time, time);
}

/** Whether the marker was touched just now. */
async function refreshed(place: AgentHome): Promise<boolean> {
  const found = await stat(join(place.path, MARKER)).catch(() => undefined);
  return found !== undefined && Math.abs(Date.now() - found.mtimeMs) < 60_000;
}

async function createToken(more: Record<string, unknown>): Promise<string> {
  const { body } = await vault.request("POST", "auth/token/create", { policies: ["user"], ...more });
  return (body["auth"] as { client_token: string }).client_token;
}

/** The configuration must not be read: one that cannot be loaded would exit 1. */
async function assertSilent(place: AgentHome, more: NodeJS.ProcessEnv = {}): Promise<void> {
  const done = await place.agent(["login-check"], more);
  assert.deepEqual([done.code, done.stdout, done.stderr], [0, "", ""]);
}

describe("login-check rule 1: the suppression marker", () => {
  it("within AGENT_SUPPRESS_HOURS exits 0 silently without reading the configuration [agent 8.1]", async () => {
    const place = await home();
    await place.write(".config/daemon/config.yaml", "not: {a config");
    await age(place, 6 * HOUR_S - 60);
    await assertSilent(place);
    await age(place, 6 * HOUR_S + 60);
    assert.equal((await place.agent(["login-check"])).code, 1, "the default is 6 hours");
    await age(place, 8 * HOUR_S);
    await assertSilent(place, { AGENT_SUPPRESS_HOURS: "9" });
  });

  it("a marker from the future is stale [agent 8.3]", async () => {
    const place = await home();
    await age(place, -HOUR_S);
    assert.match((await place.agent(["login-check"])).stderr, /no cached token/);
  });

  it("AGENT_SUPPRESS_MARKER or XDG_STATE_HOME sets its path, if it is absolute [agent 8.2]", async () => {
    const place = await home();
    const other = await place.write("elsewhere", "");
    await assertSilent(place, { AGENT_SUPPRESS_MARKER: other });
    await place.write("state/daemon/login-check-suppress", "");
    await assertSilent(place, { XDG_STATE_HOME: join(place.path, "state") });
    await age(place, 1);
    await assertSilent(place, { XDG_STATE_HOME: "" });
    await assertSilent(place, { XDG_STATE_HOME: "state" });
    assert.equal(suppression.FOLDER, BRAND.folder);
  });

  it("an unknown option is an error all the same", async () => {
    const place = await home();
    await age(place, 1);
    assert.equal((await place.agent(["login-check", "--bogus"])).code, 1);
  });
});

describe("login-check rule 2: --no-passwd", () => {
  it("exits 0 for a user of the passwd file, and refreshes the marker [agent 8.4]", async () => {
    const place = await home();
    const file = await place.write("passwd", `${userInfo().username}:x:0:0::/root:/bin/sh\n`);
    const done = await place.agent(["login-check", "--no-passwd"], { AGENT_PASSWD_FILE: file });
    assert.deepEqual([done.code, done.stderr], [0, ""]);
    assert.ok(await refreshed(place));
  });

  it("continues for another user, and with a warning for an unreadable file [agent 8.5]", async () => {
    const place = await home();
    const file = await place.write("passwd", `somebody:x:${userInfo().username}:\n`);
    const other = await place.agent(["login-check", "--no-passwd"], { AGENT_PASSWD_FILE: file });
    assert.match(other.stderr, /^no cached token\n/);
    await age(place, 7 * HOUR_S);
    const missing = await place.agent(["login-check", "--no-passwd"], { AGENT_PASSWD_FILE: "/none" });
    assert.equal(missing.code, 0);
    assert.match(missing.stderr, /^agent: cannot read \/none \(ENOENT\); going on[^\n]*\nno cached token\n/);
  });
});

describe("login-check rule 4: the token", () => {
  it("in the first half of its life is enough, and is not renewed [agent 8.10]", async () => {
    const place = await home();
    await place.write(".daemon-token", await createToken({ ttl: "1h" }));
    await assertSilent(place);
    assert.ok(await refreshed(place));
  });

  it("past halfway it is renewed [agent 8.11]", async () => {
    const place = await home();
    // Either half is long enough for a program's start on a loaded machine.
    const token = await createToken({ ttl: "24s" });
    await place.write(".daemon-token", token);
    await new Promise((resolve) => setTimeout(resolve, 12_500));
    await assertSilent(place);
    const { body } = await vault.request("POST", "auth/token/lookup", { token });
    assert.ok((body["data"] as { ttl: number }).ttl > 12);
  });

  it("past halfway and not renewable: warns with the absolute end, exit 0 [agent 8.12]", async () => {
    const place = await home();
    // Its second half is long enough for a program's start on a loaded machine.
    await place.write(".daemon-token", await createToken({ ttl: "22s", renewable: false }));
    await new Promise((resolve) => setTimeout(resolve, 11_500));
    const { code, stderr } = await place.agent(["login-check"]);
    assert.equal(code, 0);
    assert.match(
      stderr,
      /^agent: the token could not be renewed; it is valid until \d{4}-\d\d-\d\dT[\d:.]+Z\n$/,
    );
  });

  it("none: one line says 'no cached token', and the login is run [agent 8.13]", async () => {
    const place = await home();
    const token = await createToken({ ttl: "1h" });
    const { code, shown } = await place.atTerminal(
      ["login-check"],
      [[/Token for the secrets store: /, token]],
    );
    assert.equal(code, 0, shown);
    assert.match(shown, /no cached token/);
    assert.equal(await place.token(), token);
  });

  it("prints 'token expired' or, if the store refuses it, 'token no longer valid' [agent 8.13]", async () => {
    const place = await home();
    // Long enough for a loaded machine to use it once, so that its end is known.
    const token = await createToken({ ttl: "15s", renewable: false });
    const made = performance.now();
    await place.write(".daemon-token", token);
    await place.ok("secrets", "list");
    await new Promise((resolve) => setTimeout(resolve, 15_500 - (performance.now() - made)));
    assert.match((await place.agent(["login-check"])).stderr, /^token expired\n/);
    await place.write(".daemon-token", "hvs.hunter2");
    await age(place, 7 * HOUR_S);
    const { stderr } = await place.agent(["login-check"]);
    assert.match(stderr, /^token no longer valid\n/);
    assert.doesNotMatch(stderr, /hunter2/);
  });

  it("one of another identity is reported as such, from the file and AGENT_TOKEN [agent 8.13]", async () => {
    const place = await home();
    await place.write(".daemon-token", await createToken({ ttl: "1h", display_name: "ada" }));
    await place.ok("secrets", "list");
    const other = await createToken({ ttl: "1h", display_name: "bob" });
    const IDENTITY = "belongs to another identity than the last one";
    const given = await place.agent(["login-check"], { AGENT_TOKEN: other });
    assert.equal(given.code, 0);
    assert.equal(given.stderr, `agent: the token of AGENT_TOKEN ${IDENTITY}; the next one is used\n`);
    await place.write(".daemon-token", other);
    await age(place, 7 * HOUR_S);
    const { code, stderr } = await place.agent(["login-check"]);
    assert.equal(code, 0);
    const file = join(place.path, ".daemon-token");
    const hint = "If that is meant, run 'agent login --switch'.";
    assert.equal(stderr.split("\n")[0], `the token of ${file} ${IDENTITY}. ${hint}`);
    assert.doesNotMatch(stderr, /no longer valid|no cached token/);
  });

  it("a token file that is refused is reported as such [agent 8.13]", async () => {
    const place = await home();
    const file = await place.write(".daemon-token", await createToken({ ttl: "1h" }), 0o644);
    const { code, stderr } = await place.agent(["login-check"]);
    assert.equal(code, 0);
    assert.match(
      stderr,
      new RegExp(`^refused the token file ${file}: others can read or write it\\. Run 'chmod 600`),
    );
  });

  it("an AGENT_TOKEN that the store refuses is the reason where there is no other", async () => {
    const place = await home();
    const { stderr } = await place.agent(["login-check"], { AGENT_TOKEN: "hvs.hunter2" });
    assert.match(stderr, /^the store does not accept the token of AGENT_TOKEN\n/);
  });

  it("the line is yellow on a terminal, plain with NO_COLOR, absent with --quiet [agent 8.14]", async () => {
    const place = await home();
    const shown = async (args: string[], more: NodeJS.ProcessEnv): Promise<string> => {
      await age(place, 7 * HOUR_S);
      return (await place.atTerminal(["login-check", ...args], [[/Token/, ""]], more)).shown;
    };
    assert.ok((await shown([], {})).startsWith("\u001b[33mno cached token\u001b[0m"));
    assert.match(await shown([], { NO_COLOR: "1" }), /^no cached token/);
    assert.match(await shown(["--quiet"], {}), /^Token for the secrets store/);
  });

  it("an AGENT_TOKEN that the store refuses is reported, and the next source is used", async () => {
    const place = await home();
    await place.write(".daemon-token", await createToken({ ttl: "1h" }));
    const { code, stderr } = await place.agent(["login-check"], { AGENT_TOKEN: "hvs.hunter2" });
    assert.equal(code, 0);
    assert.match(stderr, /^agent: the store does not accept the token of AGENT_TOKEN/);
    assert.doesNotMatch(stderr, /hunter2/);
  });

  it("the embedded store needs no login [agent 8.19]", async () => {
    const place = await home();
    await place.configure({ driver: "embedded" });
    await assertSilent(place);
  });
});

describe("login-check rules 5 and 6: marker and exit code", () => {
  it("a declined or failed login exits 0 and refreshes the marker [agent 8.15]", async () => {
    const place = await home();
    assert.equal((await place.atTerminal(["login-check"], [[/Token/, ""]])).code, 0);
    assert.ok(await refreshed(place));
    await age(place, 7 * HOUR_S);
    assert.equal((await place.atTerminal(["login-check"], [[/Token/, "hvs.wrong"]])).code, 0);
    assert.ok(await refreshed(place));
    await place.configure({ address: "http://127.0.0.1:1", username: "ada" });
    await place.write(".daemon-token", "hvs.x");
    await age(place, 7 * HOUR_S);
    const away = await place.agent(["login-check"]);
    assert.equal(away.code, 0);
    assert.match(away.stderr, /^agent: cannot reach the store at [^\n]+\n$/);
    assert.ok(await refreshed(place));
  });

  it("a store that does not answer delays a shell's start by seconds only [agent 8.18]", async () => {
    const place = await home();
    const sockets = new Set<Socket>();
    const mute = createServer((socket) => void sockets.add(socket)).listen(0, "127.0.0.1");
    try {
      await once(mute, "listening");
      const { port } = mute.address() as AddressInfo;
      await place.configure({ address: `http://127.0.0.1:${port}`, username: "ada" });
      await place.write(".daemon-token", "hvs.x");
      const begun = performance.now();
      const [hook, status] = await Promise.all([place.agent(["login-check"]), place.agent(["status"])]);
      assert.deepEqual([hook.code, status.code], [0, 0]);
      assert.match(hook.stderr, /^agent: cannot reach the store at [^\n]+: no answer in time\n$/);
      assert.match(status.stdout, /^Store: .*, not reachable$/m);
      // Five seconds of patience, and the start of two programs on a loaded machine; a cycle would wait for thirty.
      assert.ok(performance.now() - begun < 28_000);
      assert.ok(await refreshed(place));
    } finally {
      for (const socket of sockets) socket.destroy();
      mute.close();
    }
  });

  it("an interrupted login is exit 0 with the marker refreshed [agent 8.15]", async () => {
    const place = await home();
    const { code } = await place.atTerminal(["login-check"], [[/Token/, "\u0003"]]);
    assert.equal(code, 0);
    assert.ok(await refreshed(place));
  });

  for (const hours of ["0", "-1", "1.5", "x", "1e3"]) {
    it(`AGENT_SUPPRESS_HOURS=${hours} is exit 1, and the marker is not touched [agent 8.16 19.2]`, async () => {
      const place = await home();
      await age(place, 1000);
      const { code, stderr } = await place.agent(["login-check"], { AGENT_SUPPRESS_HOURS: hours });
      assert.equal(code, 1);
      assert.match(stderr, /AGENT_SUPPRESS_HOURS takes a whole number of hours above zero/);
      assert.equal(await refreshed(place), false);
    });
  }

  it("a faulty configuration is exit 1, once: the marker is refreshed [agent 8.17]", async () => {
    const place = await home();
    await place.write(".config/daemon/config.yaml", "stroe: {}\n");
    assert.equal((await place.agent(["login-check"])).code, 1);
    await assertSilent(place);
  });
});

const SHELLS = ["sh", "bash", "zsh", "fish"];

describe("agent shell-hook", () => {
  for (const shell of SHELLS) {
    it(`${shell}: calls login-check only if the marker is stale, unset or invalid [agent 8.20]`, async () => {
      const place = await home();
      const hook = await place.write("hook", await place.ok("shell-hook", shell, "--quiet"));
      // Stands for the command, and tells how it was called.
      await place.write("bin/agent", '#!/bin/sh\necho called "$@"\n', 0o700);
      const source = async (more: NodeJS.ProcessEnv = {}): Promise<string> => {
        const done = await run(shell, ["-c", `${shell === "fish" ? "source" : "."} ${hook}`], {
          env: { ...place.env, ...more },
        });
        return done.stdout + done.stderr;
      };
      const called = "called login-check --quiet\n";
      assert.equal(await source(), called);
      await age(place, 5 * HOUR_S);
      assert.equal(await source(), "");
      assert.equal(await source({ AGENT_SUPPRESS_HOURS: "4" }), called);
      for (const hours of ["0", "-1", "x", "1.5"])
        assert.equal(await source({ AGENT_SUPPRESS_HOURS: hours }), called);
      await age(place, 7 * HOUR_S);
      assert.equal(await source(), called);
      await age(place, -2 * HOUR_S);
      assert.equal(await source(), called);
      const other = await place.write("other marker", "");
      assert.equal(await source({ AGENT_SUPPRESS_MARKER: other }), "");
    });
  }

  it("another shell is refused by name", async () => {
    const place = await home();
    const { code, stderr } = await place.agent(["shell-hook", "tcsh"]);
    assert.equal(code, 1);
    assert.match(stderr, /knows zsh, fish, bash, sh/);
  });
});
