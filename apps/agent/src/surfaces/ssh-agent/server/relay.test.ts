import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run, startSshd, until } from "@devplat/testkit";
import { RawClient } from "./raw-client.test-kit.ts";
import {
  MemorySource,
  agentArgs,
  identityOf,
  keyAt,
  keysFolder,
  makeKey,
  startSshAgent,
} from "./ssh-agent.test-kit.ts";

/** A real ssh-agent on a socket. */
async function startOpenSshAgent(folder: string): Promise<{ socket: string; pid: number } & AsyncDisposable> {
  const socket = join(folder, "openssh.sock");
  const child = spawn("ssh-agent", ["-D", "-a", socket], { stdio: "ignore" });
  const ended = once(child, "exit");
  await until(() => existsSync(socket));
  return {
    socket,
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      child.kill();
      await ended;
    },
  };
}

const addTo = async (socket: string, args: readonly string[]): Promise<void> => {
  const added = await run("ssh-add", ["-q", ...args], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
  assert.equal(added.code, 0, added.stderr);
};

describe("a relayed ssh-agent", () => {
  it("its keys follow the own ones without duplicates, and sign", async () => {
    await using keys = await keysFolder();
    await using other = await startOpenSshAgent(keys.path);
    const [own, both, theirs] = [
      await makeKey(keys.path, "own"),
      await makeKey(keys.path, "both"),
      await makeKey(keys.path, "theirs"),
    ];
    await addTo(other.socket, [both.path, theirs.path]);
    await using stand = await startSshAgent({
      sources: [new MemorySource("a", [identityOf(own, "own"), identityOf(both, "both here")])],
      settings: { relay: [other.socket] },
    });
    const listed = (await stand.run("ssh-add", ["-l"])).stdout.trimEnd().split("\n");
    assert.deepEqual(
      listed.map((line) => line.split(" ").slice(2, -1).join(" ")),
      ["own", "both here", "theirs"],
    );
    for (const key of [own, both, theirs]) {
      const tried = await stand.run("ssh-add", ["-T", `${key.path}.pub`]);
      assert.equal(tried.code, 0, tried.stderr);
    }
    const sources = stand.log.flatMap(({ fields }) => ("outcome" in fields ? [fields["source"]] : []));
    assert.deepEqual(sources, ["a", "a", other.socket]);
    const view = stand.agent.status().sources.find(({ source }) => source === "relay");
    assert.deepEqual(
      view?.identities.map(({ comment, signatures }) => [comment, signatures]),
      [
        ["both", 1],
        ["theirs", 1],
      ],
    );
  });

  it("takes added keys, gives removed ones back, and is locked with this one", async () => {
    await using keys = await keysFolder();
    await using other = await startOpenSshAgent(keys.path);
    const [own, added] = [await makeKey(keys.path, "own"), await makeKey(keys.path, "added")];
    await using stand = await startSshAgent({
      sources: [new MemorySource("a", [identityOf(own, "own")])],
      settings: { relay: [other.socket] },
    });
    const listed = async (socket: string): Promise<string> =>
      (await stand.run("ssh-add", ["-l"], { env: { SSH_AUTH_SOCK: socket } })).stdout;
    const result = await stand.run("ssh-add", ["-q", "-t", "1h", "-c", added.path]);
    assert.equal(result.code, 0, result.stderr);
    assert.match(await listed(other.socket), /added/);
    assert.equal((await stand.run("ssh-add", ["-q", "-d", added.path])).code, 0);
    assert.doesNotMatch(await listed(other.socket), /added/);
    await addTo(other.socket, [added.path]);
    using client = await RawClient.connect(stand.socket);
    client.sendMessage(Buffer.of(22, 0, 0, 0, 1, 65));
    assert.equal((await client.next())?.type, "success");
    assert.match(await listed(stand.socket), /no identities/);
    assert.notEqual((await stand.run("ssh-add", ["-T", `${added.path}.pub`])).code, 0);
    assert.match(await listed(other.socket), /added/);
    client.sendMessage(Buffer.of(23, 0, 0, 0, 1, 65));
    assert.equal((await client.next())?.type, "success");
    assert.equal((await stand.run("ssh-add", ["-D"])).code, 0);
    assert.match(await listed(other.socket), /no identities/);
    stand.agent.showKeys();
    assert.match(await listed(stand.socket), /own/);
  });

  it("gets the session-bind, so that its restrictions hold", async () => {
    const [allowed, refused] = [await startSshd(), await startSshd()];
    try {
      await using keys = await keysFolder();
      await using other = await startOpenSshAgent(keys.path);
      await using stand = await startSshAgent({ sources: [], settings: { relay: [other.socket] } });
      const known = join(stand.folder, "known");
      const lines = [allowed, refused].map(({ port, hostKey }) => `[127.0.0.1]:${port} ${hostKey}`);
      await stand.know(...lines);
      await stand.run("cp", [join(stand.folder, "known_hosts"), known]);
      // ssh-add takes the name of known_hosts.
      for (const { userKey } of [allowed, refused]) {
        await addTo(other.socket, ["-H", known, "-h", `[127.0.0.1]:${allowed.port}`, userKey]);
      }
      assert.equal((await stand.run("ssh", [...agentArgs(allowed), "true"])).code, 0);
      assert.equal((await stand.run("ssh", [...agentArgs(refused), "true"])).code, 255);
    } finally {
      await Promise.all([allowed.stop(), refused.stop()]);
    }
  });

  it("one that hangs, is missing or talks nonsense never hides the own keys", async () => {
    await using keys = await keysFolder();
    const own = await makeKey(keys.path, "own");
    const open = new Set<Socket>();
    const path = join(keys.path, "strange.sock");
    let answer: Buffer | undefined;
    const server = createServer((socket) => {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("data", () => answer !== undefined && socket.write(answer));
    }).listen(path);
    await once(server, "listening");
    try {
      const table: [relay: string, answer: Buffer | undefined, problem: RegExp][] = [
        [path, undefined, /not answer in time/],
        [path, Buffer.from([255, 255, 255, 255, 12]), /cannot be read/],
        [path, Buffer.from([0, 0, 0, 5, 12, 255, 255, 255, 255]), /cannot be read/],
        [join(keys.path, "missing.sock"), undefined, /nobody answers/],
      ];
      for (const [relay, bytes, problem] of table) {
        answer = bytes;
        await using stand = await startSshAgent({
          sources: [new MemorySource("a", [identityOf(own, "own")])],
          settings: { relay: [relay] },
        });
        assert.match((await stand.run("ssh-add", ["-l"])).stdout, /own/);
        assert.match(stand.agent.status().sources.at(-1)?.error ?? "", problem);
        // It is not asked again immediately.
        assert.equal((await stand.run("ssh-add", ["-T", `${own.path}.pub`])).code, 0);
      }
    } finally {
      for (const socket of open) socket.destroy();
      server.close();
    }
  });

  it("an agent that relays to itself or in a circle lists each key once", async () => {
    await using keys = await keysFolder();
    const [one, two] = [await makeKey(keys.path, "one"), await makeKey(keys.path, "two")];
    await using stand = await startSshAgent({ sources: [new MemorySource("a", [identityOf(one, "one")])] });
    stand.settings = { ...stand.settings, relay: [stand.socket] };
    await stand.agent.reload();
    const listed = async (): Promise<string[]> =>
      (await stand.run("ssh-add", ["-l"])).stdout.trimEnd().split("\n");
    assert.equal((await listed()).length, 1);

    await using other = await startSshAgent({
      sources: [new MemorySource("b", [identityOf(two, "two")])],
      settings: { relay: [stand.socket] },
    });
    stand.settings = { ...stand.settings, relay: [other.socket] };
    await stand.agent.reload();
    assert.equal((await listed()).length, 2);
  });

  it("a program that leads back here is asked, and then not relayed again", async () => {
    await using keys = await keysFolder();
    const own = await makeKey(keys.path, "own");
    await using stand = await startSshAgent({ sources: [new MemorySource("a", [identityOf(own, "own")])] });
    const path = join(keys.path, "back.sock");
    const script = `const { connect, createServer } = require("net");
      createServer((s) => { console.error("asked"); s.pipe(connect(process.argv[2])).pipe(s); }).listen(process.argv[1], () => console.error("ready"));`;
    const child = spawn(process.execPath, ["-e", script, path, stand.socket], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const ended = once(child, "exit");
    let output = "";
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    try {
      await until(() => output.includes("ready"));
      stand.settings = { ...stand.settings, relay: [path] };
      await stand.agent.reload();
      assert.match((await stand.run("ssh-add", ["-l"])).stdout, /^\S+ \S+ own \S+\n$/);
      assert.equal(output.match(/asked/g)?.length, 1);
      assert.equal(stand.agent.status().sources.at(-1)?.error, null);
    } finally {
      child.kill();
      await ended;
    }
  });
});

describe("further sockets", () => {
  it("a socket lists the keys of its sources only, and follows a reload", async () => {
    await using keys = await keysFolder();
    await using other = await startOpenSshAgent(keys.path);
    const [one, two, theirs] = [
      await makeKey(keys.path, "one"),
      await makeKey(keys.path, "two"),
      await makeKey(keys.path, "theirs"),
    ];
    await addTo(other.socket, [theirs.path]);
    const more = join(keys.path, "more.sock");
    await using stand = await startSshAgent({
      sources: [
        new MemorySource("a", [identityOf(one, "one")]),
        new MemorySource("b", [identityOf(two, "two")]),
      ],
      settings: { relay: [other.socket], sockets: [{ path: more, keys: ["b"] }] },
    });
    const env = { SSH_AUTH_SOCK: more };
    const listed = async (): Promise<string> => (await stand.run("ssh-add", ["-l"], { env })).stdout;
    assert.match(await listed(), /^\S+ \S+ two \S+\n$/);
    assert.notEqual((await stand.run("ssh-add", ["-T", `${one.path}.pub`], { env })).code, 0);
    assert.equal((await stand.run("ssh-add", ["-T", `${one.path}.pub`])).code, 0);
    assert.deepEqual(stand.agent.status().sockets, [stand.socket, more]);
    // Such as a container: it must not keep the user out.
    await stand.run("ssh-add", ["-D"], { env });
    using client = await RawClient.connect(more);
    client.sendMessage(Buffer.of(22, 0, 0, 0, 1, 65));
    assert.equal((await client.next())?.type, "failure");
    assert.match((await stand.run("ssh-add", ["-l"])).stdout, /one/);

    stand.settings = { ...stand.settings, sockets: [{ path: more, keys: ["a"] }] };
    await stand.agent.reload();
    assert.match(await listed(), /^\S+ \S+ one \S+\n$/);
    stand.settings = { ...stand.settings, sockets: [] };
    await stand.agent.reload();
    assert.equal(existsSync(more), false);
    assert.equal((await stand.run("ssh-add", ["-l"])).code, 0);
  });

  it("the socket of a forward lists keys for its host, then those of the user's agent", async () => {
    const sshd = await startSshd();
    try {
      await using keys = await keysFolder();
      await using other = await startOpenSshAgent(keys.path);
      const theirs = await makeKey(keys.path, "theirs");
      const elsewhere = await makeKey(keys.path, "elsewhere");
      await addTo(other.socket, [theirs.path]);
      const user = await keyAt(sshd.userKey);
      await using stand = await startSshAgent({
        sources: [
          new MemorySource("a", [
            identityOf(user, "user", { hosts: ["remote.example.com"] }),
            identityOf(elsewhere, "elsewhere", { hosts: ["elsewhere.example.com"] }),
          ]),
        ],
      });
      // The pin is under the name of the remote: the user's known_hosts does not have the host.
      const knownHosts = `remote.example.com ${sshd.hostKey}\n`;
      const path = await stand.agent.listenFor("Remote.example.com", { relay: other.socket, knownHosts });
      assert.equal(
        await stand.agent.listenFor("remote.example.com", { relay: other.socket, knownHosts }),
        path,
      );
      const env = { SSH_AUTH_SOCK: path };
      const { code, stderr } = await stand.run("ssh", ["-v", ...agentArgs(sshd), "true"], { env });
      assert.equal(code, 0, stderr);
      const offered = stderr.match(/Will attempt key: .* agent$/gm) ?? [];
      assert.deepEqual(
        offered.map((line) => line.split(" ")[3]),
        ["user", "theirs"],
      );
      assert.equal(
        (await stand.run("ssh", [...agentArgs(sshd), "true"])).code,
        255,
        "not on the main socket",
      );
      await stand.agent.stop();
      assert.equal(existsSync(path), false);
    } finally {
      await sshd.stop();
    }
  });
});

describe("the socket itself", () => {
  it("a second agent on the path is refused, and a stale socket is replaced", async () => {
    await using stand = await startSshAgent({ sources: [] });
    await assert.rejects(startSshAgent({ sources: [], settings: { path: stand.socket } }), {
      code: "socket_in_use",
    });
    assert.match((await stand.run("ssh-add", ["-l"])).stdout, /no identities/);
    const stale = join(stand.folder, "stale.sock");
    const script = `require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
    await run(process.execPath, ["-e", script, stale]);
    assert.ok(existsSync(stale));
    await using next = await startSshAgent({ sources: [], settings: { path: stale } });
    assert.match((await next.run("ssh-add", ["-l"])).stdout, /no identities/);
  });

  it("a further socket that cannot be opened is in the status, and the others serve", async () => {
    await using keys = await keysFolder();
    const open = join(keys.path, "open");
    await mkdir(open);
    await chmod(open, 0o777);
    const path = join(open, "narrow.sock");
    await using stand = await startSshAgent({ sources: [], settings: { sockets: [{ path, keys: [] }] } });
    assert.match((await stand.run("ssh-add", ["-l"])).stdout, /no identities/);
    const [problem] = stand.agent.status().socket_problems;
    assert.equal(problem?.socket, path);
    assert.match(problem?.reason ?? "", /open/);
    await chmod(open, 0o700);
    await stand.agent.reload();
    assert.deepEqual(stand.agent.status().socket_problems, []);
    assert.ok(existsSync(path));
  });

  it("without its main socket nothing is left after the failed start", async () => {
    await using keys = await keysFolder();
    const path = join(keys.path, "narrow.sock");
    const failed = startSshAgent({
      sources: [],
      settings: { path: `${keys.path}/${"x".repeat(120)}`, sockets: [{ path, keys: [] }] },
    });
    await assert.rejects(failed, { code: "socket_refused" });
    assert.equal(existsSync(path), false);
  });
});
