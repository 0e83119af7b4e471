import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, link, lstat, mkdir, readFile, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  run,
  spawnGroup,
  startVault,
  tempFolder,
  until,
  type Finished,
  type TempFolder,
  type Vault,
} from "@devplat/testkit";
import { writePolicies } from "./agent-auth-stand.ts";
import { forwardSocket } from "./agent-forward-socket.ts";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";
import { runAsNobody } from "./agent-web/other-user.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;

/** curl over a Unix socket. */
function curl(socket: string, path: string, ...more: string[]): Promise<Finished> {
  return run("curl", ["--silent", "--unix-socket", socket, ...more, `http://localhost${path}`], {});
}

/** A change with its CSRF token. */
async function change(socket: string, method: string, path: string, ...more: string[]): Promise<string> {
  const { token } = JSON.parse((await curl(socket, "/api/v1/csrf")).stdout) as { token: string };
  const headers = ["--header", `X-CSRF-Token: ${token}`, "--header", "Content-Type: application/json"];
  return (await curl(socket, path, "--request", method, ...headers, ...more)).stdout;
}

/** Starts the daemon and waits until its API socket answers and its peer socket, opened after it, does too. */
async function start(place: Home, socket: string, peerSocket?: string): Promise<RunningAgent> {
  return await daemon(
    place,
    async () =>
      (await curl(socket, "/healthz")).stdout === '{"status":"ok"}' &&
      (peerSocket === undefined || (await curl(peerSocket, "/")).code === 0),
  );
}

describe("the local API socket", { timeout: TIMEOUT_MS }, () => {
  let folder: TempFolder;
  let place: Home;
  let agent: RunningAgent;
  let socket: string;
  let peerSocket: string;
  before(async () => {
    folder = await tempFolder("agent-local-api");
    const path = `${join(folder.path, "bin")}:${process.env["PATH"] ?? ""}`;
    place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path, PATH: path, DISPLAY: ":none" });
    await place.configure(`store: { driver: embedded }
web: { enabled: true, listen: "127.0.0.1:0", editable_paths: [tools] }
api: { enabled: true }
rules:
  - { name: example, key: tools/example, target: { path: ~/out.yaml, format: yaml } }
`);
    socket = join(folder.path, "daemon/api.sock");
    peerSocket = join(folder.path, "daemon/peer.sock");
    agent = await start(place, socket, peerSocket);
  });
  after(async () => {
    await agent.stop();
    await folder.remove();
  });

  it("has mode 0600 in a folder with mode 0700 [agent 33.1]", async () => {
    for (const path of [socket, peerSocket]) assert.equal((await lstat(path)).mode & 0o777, 0o600);
    assert.equal((await lstat(join(folder.path, "daemon"))).mode & 0o777, 0o700);
  });

  it("serves the JSON API to its user without a login, with a CSRF handshake [agent 33.3]", async () => {
    const status = JSON.parse((await curl(socket, "/api/v1/status")).stdout) as {
      api: unknown;
      peers: unknown;
    };
    assert.deepEqual(status.api, { socket, present: true });
    assert.deepEqual(status.peers, {
      socket: peerSocket,
      offers: ["token", "browse", "notify", "clipboard"],
      token_handouts: 0,
      last_token_handout_at: null,
      tokens: { lent: [], added_policies: [], problem: null, asking: false },
    });
    const body = ["--data", '{"fields":{"token":"s3cret"}}'];
    const json = ["--header", "Content-Type: application/json"];
    const refused = await curl(
      socket,
      "/api/v1/secrets/tools/example",
      "--request",
      "POST",
      ...json,
      ...body,
    );
    assert.match(refused.stdout, /"csrf_refused"/);
    assert.equal(
      await change(socket, "POST", "/api/v1/secrets/tools/example", ...body),
      '{"path":"tools/example","version":1}',
    );
    assert.match(await change(socket, "POST", "/api/v1/secrets/elsewhere", ...body), /"not_editable"/);
    await until(
      async () => (await place.read("out.yaml")).includes("s3cret"),
      () => agent.log(),
    );
    assert.match((await curl(socket, "/api/v1/secrets/tools/example?reveal=true")).stdout, /s3cret/);
    assert.match((await curl(socket, "/api/v1/rules")).stdout, /"name":"example"/);
    assert.match((await curl(socket, "/metrics")).stdout, /^# HELP/);
  });

  it("serves no pages, and its errors are JSON with the usual headers [agent 32.4]", async () => {
    for (const path of ["/", "/ui/", "/setup/", "/login/token", "/static/x"]) {
      const { stdout } = await curl(socket, path, "--include");
      assert.match(stdout, /^HTTP\/1\.1 404 /);
      assert.match(stdout, /X-Content-Type-Options: nosniff/);
      assert.match(stdout, /"code":"not_found"/);
    }
  });

  it("streams state changes", async () => {
    const child = spawnGroup("curl", [
      "--silent",
      "--no-buffer",
      "--unix-socket",
      socket,
      "http://localhost/api/v1/events",
    ]);
    let seen = "";
    child.stdout?.on("data", (chunk: Buffer) => (seen += chunk.toString()));
    await until(
      async () => seen.includes("event: status"),
      () => seen,
    );
    const first = seen.length;
    await change(socket, "POST", "/api/v1/sync?wait=true");
    await until(
      async () => seen.length > first,
      () => seen,
    );
    child.kill();
    await once(child, "close");
  });

  it("refuses another local user, who cannot even reach the folder", async () => {
    for (const path of [socket, peerSocket]) {
      const { code, stdout } = await runAsNobody("curl", [
        "--silent",
        "--unix-socket",
        path,
        "http://localhost/api/v1/status",
      ]);
      assert.equal(code, 7);
      assert.equal(stdout, "");
    }
  });

  it("refuses another local user by the socket's own mode, should the folder be open", async () => {
    await chmod(folder.path, 0o755);
    await chmod(join(folder.path, "daemon"), 0o755);
    try {
      const { code } = await runAsNobody("curl", ["--silent", "--unix-socket", socket, "http://localhost/"]);
      assert.equal(code, 7);
    } finally {
      await chmod(join(folder.path, "daemon"), 0o700);
      await chmod(folder.path, 0o700);
    }
  });

  it("an action on one surface keeps every other surface's busy: 503", async () => {
    const url = (await readFile(join(folder.path, "daemon/web.url"), "utf8")).trim();
    const [begun, go] = [join(folder.path, "begun"), join(folder.path, "go")];
    await place.write(
      "bin/xclip",
      `#!/bin/sh\ntouch "${begun}"; while [ ! -e "${go}" ]; do sleep 0.02; done\n`,
      0o700,
    );
    const path = "/api/v1/remote/clipboard";
    const first = run("curl", ["--silent", "--data", "text=first", url + path], {});
    await until(
      async () => (await lstat(begun)).isFile(),
      () => agent.log(),
    );
    for (const other of [socket, peerSocket]) {
      const { stdout } = await curl(other, path, "--data", "text=second", "--write-out", "%{http_code}");
      assert.match(stdout, /"code":"busy".*503$/);
    }
    await writeFile(go, "");
    assert.equal((await first).stdout, '{"status":"copied"}');
    assert.equal((await curl(peerSocket, path, "--data", "text=third")).stdout, '{"status":"copied"}');
  });

  it("a second daemon is refused, and the first continues [agent 13.10 33.2]", async () => {
    const same = await place.agent(["run"]);
    assert.equal(same.code, 1);
    assert.match(same.stderr, /another agent holds/);
    // With a state of its own it gets past the lock, and meets the socket.
    const other = new Home(join(folder.path, "other"), { XDG_RUNTIME_DIR: folder.path });
    await other.configure("store: { driver: embedded }\napi: { enabled: true }\n");
    const refused = await other.agent(["run"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, new RegExp(`another program answers on ${socket}`));
    assert.equal((await curl(socket, "/healthz")).stdout, '{"status":"ok"}');
  });

  it("status reports the API socket path and whether it is present [agent 9.3]", async () => {
    assert.match(await place.ok("status"), new RegExp(`^API socket: +${socket} \\(present\\)$`, "m"));
    const { api } = JSON.parse(await place.ok("status", "--json")) as { api: unknown };
    assert.deepEqual(api, { socket, present: true });
    const idle = new Home(place.path, { XDG_RUNTIME_DIR: join(place.path, "elsewhere") });
    assert.match(await idle.ok("status"), /^API socket: .*elsewhere\/daemon\/api\.sock \(not present\)$/m);
  });

  it("'agent open' and 'agent sync' use it, also without the web key [agent 5.4 33.7]", async () => {
    const key = join(folder.path, "daemon/web.key");
    const saved = await readFile(key);
    await writeFile(key, "wrong\n");
    assert.match(await place.ok("open"), /^http:\/\/127\.0\.0\.1:\d+\/unlock\?code=/);
    assert.match(await place.ok("sync"), /^0 changed, 1 unchanged, 0 failed$/m);
    await writeFile(key, saved);
  });

  it("a stale socket of a killed daemon is replaced, and removed at the end [agent 33.2]", async () => {
    const { ino } = await lstat(socket);
    process.kill(agent.pid ?? 0, "SIGKILL");
    await until(
      async () => (await curl(socket, "/healthz")).code === 7,
      () => "it still answers",
    );
    assert.ok((await lstat(socket)).isSocket());
    agent = await start(place, socket, peerSocket);
    assert.notEqual((await lstat(socket)).ino, ino);
    assert.equal(await agent.stop(), 0);
    assert.deepEqual(await readdir(join(folder.path, "daemon")), []);
    agent = await start(place, socket, peerSocket);
  });
});

describe("the local API socket, where it is configured", { timeout: TIMEOUT_MS }, () => {
  let folder: TempFolder;
  let place: Home;
  before(async () => {
    folder = await tempFolder("agent-local-api");
    place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
  });
  after(() => folder.remove());

  const configure = (api: string): Promise<string> =>
    place.configure(`store: { driver: embedded }\napi: ${api}\n`);

  it("api.unix.path and api.peer.path move the sockets; api.peer.enabled opens one [agent 4.17]", async () => {
    await configure(
      '{ enabled: true, unix: { path: "~/sockets/a.sock" }, peer: { path: "~/sockets/p.sock" } }',
    );
    const socket = join(folder.path, "sockets/a.sock");
    const both = await start(place, socket, join(folder.path, "sockets/p.sock"));
    assert.deepEqual((await readdir(join(folder.path, "sockets"))).toSorted(), ["a.sock", "p.sock"]);
    assert.equal((await lstat(join(folder.path, "sockets"))).mode & 0o777, 0o700);
    assert.equal(await both.stop(), 0);
    await configure("{ peer: { enabled: true } }");
    const alone = await daemon(place, async () =>
      (await curl(join(folder.path, "daemon/peer.sock"), "/")).stdout.includes("not_found"),
    );
    assert.ok(!(await readdir(join(folder.path, "daemon"))).includes("api.sock"));
    assert.equal(await alone.stop(), 0);
    await configure("{ enabled: true, peer: { enabled: false } }");
    const withoutPeer = await start(place, join(folder.path, "daemon/api.sock"));
    assert.ok(!(await readdir(join(folder.path, "daemon"))).includes("peer.sock"));
    assert.equal(await withoutPeer.stop(), 0);
  });

  const refusals: [string, () => Promise<void>, RegExp][] = [
    [
      "a symlink in its place",
      async () => {
        await mkdir(join(folder.path, "links"), { mode: 0o700 });
        await writeFile(join(folder.path, "precious"), "kept");
        await symlink(join(folder.path, "precious"), join(folder.path, "links/a.sock"));
        await configure('{ enabled: true, unix: { path: "~/links/a.sock" } }');
      },
      /cannot open the socket .*: there is a file that is not a socket/,
    ],
    [
      "a folder that others can reach",
      async () => {
        await mkdir(join(folder.path, "open"), { mode: 0o755 });
        await configure('{ enabled: true, unix: { path: "~/open/a.sock" } }');
      },
      /others can reach its folder/,
    ],
    [
      "a path too long for a socket",
      async () => void (await configure(`{ enabled: true, unix: { path: "~/${"x".repeat(120)}" } }`)),
      /longer than 107 bytes/,
    ],
    [
      "a relative path",
      async () => void (await configure("{ enabled: true, unix: { path: a.sock } }")),
      /api\.unix\.path: expected a path from/,
    ],
    [
      "an offer that is none",
      async () => void (await configure("{ enabled: true, peer: { offers: [secrets] } }")),
      /api\.peer\.offers/,
    ],
  ];
  for (const [name, prepare, message] of refusals) {
    it(`exits 1 and says why: ${name}`, async () => {
      await prepare();
      const { code, stderr } = await place.agent(["run"]);
      assert.equal(code, 1);
      assert.match(stderr, message);
    });
  }

  it("the target of a symlink is unchanged", async () => {
    assert.equal(await place.read("precious"), "kept");
  });
});

describe("the local API by socket activation", { timeout: TIMEOUT_MS }, () => {
  let folder: TempFolder;
  let place: Home;
  before(async () => {
    folder = await tempFolder("agent-activation");
    place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
    await place.configure("store: { driver: embedded }\napi: { enabled: true }\n");
  });
  after(() => folder.remove());

  /** Listening sockets as a supervisor opens them: it holds them, and takes no connection. */
  async function open(...names: string[]): Promise<{ descriptors: number[]; release: () => Promise<void> }> {
    const servers: Server[] = [];
    for (const name of names) {
      const server = createServer().listen(join(folder.path, name));
      await once(server, "listening");
      await chmod(join(folder.path, name), 0o600);
      servers.push(server);
    }
    return {
      // Node has no public name for it.
      descriptors: servers.map((server) => (server as unknown as { _handle: { fd: number } })["_handle"].fd),
      release: async () => {
        // Node takes the file away with its own end of the socket; a supervisor leaves it.
        for (const name of names) await link(join(folder.path, name), join(folder.path, `${name}.kept`));
        await Promise.all(servers.map((server) => once(server.close(), "close")));
        for (const name of names) await rename(join(folder.path, `${name}.kept`), join(folder.path, name));
      },
    };
  }

  /** Starts the daemon with the sockets as descriptors 3 and up, as systemd does. */
  function activate(descriptors: readonly number[], names: string) {
    const script = 'export LISTEN_PID=$$; exec "$0" run';
    const child = spawnGroup("sh", ["-c", script, AGENT_LAUNCHER], {
      env: { ...place.env, LISTEN_FDS: String(descriptors.length), LISTEN_FDNAMES: names },
      stdio: ["ignore", "ignore", "pipe", ...descriptors],
    });
    let log = "";
    child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
    const ended = once(child, "close") as Promise<[number | null]>;
    return {
      log: () => log,
      ended: async () => (await ended)[0],
      stop: async () => {
        child.kill("SIGTERM");
        return (await ended)[0];
      },
    };
  }

  it("serves on inherited sockets by their names, and leaves them to the supervisor [agent 33.4]", async () => {
    const { descriptors, release } = await open("p.sock", "a.sock");
    const started = activate(descriptors, "peer:api");
    try {
      await release();
      const api = join(folder.path, "a.sock");
      await until(async () => (await curl(api, "/healthz")).stdout === '{"status":"ok"}', started.log);
      const peer = await curl(join(folder.path, "p.sock"), "/healthz");
      assert.match(peer.stdout, /not_found/);
      const { api: seen } = JSON.parse((await curl(api, "/api/v1/status")).stdout) as { api: unknown };
      assert.deepEqual(seen, { socket: api, present: true });
      assert.ok(!(await readdir(join(folder.path, "daemon"))).includes("api.sock"));
    } finally {
      assert.equal(await started.stop(), 0);
    }
    for (const name of ["a.sock", "p.sock"]) assert.ok((await lstat(join(folder.path, name))).isSocket());
  });

  it("a socket that others can reach is refused", async () => {
    const { descriptors, release } = await open("wide.sock");
    await chmod(join(folder.path, "wide.sock"), 0o666);
    await chmod(folder.path, 0o755);
    const started = activate(descriptors, "api");
    await release();
    assert.equal(await started.ended(), 1);
    await chmod(folder.path, 0o700);
    assert.match(started.log(), /wide\.sock: others can reach it.*\n.*SocketMode=0600/);
  });
});

describe("tokens over the sockets, with a real store", { timeout: TIMEOUT_MS }, () => {
  let vault: Vault;
  let folder: TempFolder;
  let place: Home;
  let agent: RunningAgent;
  let socket: string;
  before(async () => {
    vault = await startVault();
    await writePolicies(vault);
    folder = await tempFolder("agent-own-token");
    place = new Home(folder.path, { XDG_RUNTIME_DIR: folder.path });
    await place.configure(
      `store: { address: "${vault.address}", username: ada, token_socket: [] }\napi: { enabled: true }\n`,
    );
    socket = join(folder.path, "daemon/api.sock");
    // The daemon alone has the token; no file keeps it.
    const withToken = new Home(folder.path, {
      XDG_RUNTIME_DIR: folder.path,
      AGENT_TOKEN: await vault.createUserToken("ada", ["user"]),
    });
    agent = await start(withToken, socket, join(folder.path, "daemon/peer.sock"));
  });
  after(async () => {
    await agent.stop();
    await vault.stop();
    await folder.remove();
  });

  it("a command without a token uses the daemon's, and status names the socket [agent 10.2]", async () => {
    await place.ok("secrets", "put", "tools/example", "token=s3cret");
    assert.equal(await place.ok("secrets", "get", "tools/example", "token"), "s3cret\n");
    assert.match(await place.ok("status"), new RegExp(`authenticated, by a token borrowed from ${socket}`));
    await assert.rejects(place.read(".daemon-token"), { code: "ENOENT" });
  });

  it("a remote host borrows it over the forwarded peer socket, logged and in status [agent 9.8 33.6]", async () => {
    const remote = new Home(join(folder.path, "remote"));
    await remote.configure(`store: { address: "${vault.address}", username: ada }\n`);
    await mkdir(join(remote.path, ".ssh"), { mode: 0o700 });
    const forward = await forwardSocket(
      join(remote.path, ".ssh/daemon.sock"),
      join(folder.path, "daemon/peer.sock"),
    );
    assert.equal(await remote.ok("secrets", "get", "tools/example", "token"), "s3cret\n");
    await forward.stop();
    const status = JSON.parse((await curl(socket, "/api/v1/status")).stdout) as {
      peers: { token_handouts: number; last_token_handout_at: string };
    };
    assert.equal(status.peers.token_handouts, 1);
    assert.match(status.peers.last_token_handout_at, /^\d{4}-.*Z$/);
    await until(
      async () => /"by":"peer socket".*store token handed out/.test(agent.log()),
      () => agent.log(),
    );
    assert.match(
      await place.ok("status"),
      /^Peer socket: .*peer\.sock \(token handed out once, last \d{4}-/m,
    );
  });

  it("without the daemon there is no such token", async () => {
    await agent.stop();
    const { code, stderr } = await place.agent(["secrets", "get", "tools/example", "token"]);
    assert.equal(code, 1);
    assert.match(stderr, /not signed in/);
  });
});
