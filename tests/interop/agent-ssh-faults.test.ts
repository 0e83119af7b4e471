import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, chown, mkdir, readdir, readFile, rename, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  run,
  spawnGroup,
  startVault,
  tempFolder,
  until,
  type TempFolder,
  type Vault,
} from "@devplat/testkit";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { writePolicies } from "./agent-auth-stand.ts";
import { SshStand } from "./agent-ssh-stand.ts";
import { Home } from "./agent-stand.ts";
import { asNobody, NOBODY_UID } from "./agent-web/other-user.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 960_000;
/** A socket that leads elsewhere is noticed in 65 s, and the test's machine may be busy. */
const NOTICED_MS = 100_000;
/** Inodes of the remote account's small disk. */
const INODES = 16;
const CAN_LEND = 'path "auth/token/create" { capabilities = ["update"] }';

/** Remotes of one account, each with a socket in a folder of its own. They share nothing that a test changes. */
const NAMES = ["removed", "replaced", "full", "refused", "edited", "first", "second"] as const;
type Name = (typeof NAMES)[number];

describe("faults of a remote host and of lending", { timeout: TIMEOUT_MS }, () => {
  let vault: Vault;
  let stand: SshStand;
  let temp: TempFolder;
  /** Tokens in the store before one is lent. */
  let own: number;

  before(async () => {
    vault = await startVault();
    temp = await tempFolder("faults");
    await writePolicies(vault);
    await vault.request("PUT", "sys/policies/acl/lender", { policy: CAN_LEND });
    const store = `store: { address: "${vault.address}", username: ada }\n`;
    stand = await SshStand.start(
      { settings: ["StreamLocalBindUnlink no"] },
      `${store}api: { enabled: true }\n`,
    );
    const token = await vault.createUserToken("ada", ["default", "user", "lender"]);
    await stand.home.write(".daemon-token", token);
    const hosts = NAMES.map((name) => `Host ${name}\n  HostName ${stand.sshd.address}\n`).join("");
    await stand.sshConfig(`${hosts}Host *\n  IdentityFile ${stand.sshd.userKey}\n`);
    await stand.startAgent();
    own = await tokens();
  });
  after(async () => {
    await stand[Symbol.asyncDispose]();
    await vault.stop();
    await temp.remove();
  });

  const tokens = async (): Promise<number> => {
    const { body } = await vault.request("LIST", "auth/token/accessors");
    return (body["data"] as { keys: string[] }).keys.length;
  };
  const socketOf = (name: Name): string => join(stand.sshd.home, name, "daemon.sock");
  const viewOf = async (name: Name): Promise<RemoteView> =>
    (await stand.list()).remotes.find(({ host }) => host === name) ?? assert.fail(`no remote ${name}`);

  /** Waits for a state of one remote. One `until` is shorter than what the daemon may take. */
  async function reaches(name: Name, isReached: (view: RemoteView) => boolean): Promise<RemoteView> {
    let last: RemoteView | undefined;
    const reached = (): Promise<RemoteView> =>
      until(
        async () => isReached((last = await viewOf(name))) && last,
        () => `${JSON.stringify(last)}\n${stand.agent?.log() ?? ""}`,
      );
    return await reached().catch(reached);
  }
  const isUp = ({ state, proven }: RemoteView): boolean => state === "connected" && proven;

  async function add(name: Name, more: object = {}): Promise<RemoteView> {
    const answer = await stand.call("POST", "", {
      host: name,
      port: stand.sshd.port,
      host_key: stand.sshd.hostKey,
      remote_socket: `~/${name}/daemon.sock`,
      ...more,
    });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return await reaches(name, isUp);
  }

  /** Asks for a token over a remote socket. @returns the status, and the token if there is one */
  async function borrow(name: Name): Promise<{ status: number; token: string | undefined }> {
    const url = "http://localhost/api/v1/token";
    const args = ["-s", "-w", "\n%{http_code}", "--max-time", "20", "--unix-socket", socketOf(name), url];
    const { stdout } = await run("curl", args, {});
    const [body = "", status = ""] = stdout.split("\n");
    const answer = (body === "" ? {} : JSON.parse(body)) as { token?: string };
    return { status: Number(status), token: answer.token };
  }
  async function borrowed(name: Name): Promise<string> {
    const { status, token } = await borrow(name);
    assert.equal(status, 200, stand.agent?.log() ?? "no daemon");
    return token ?? assert.fail("no token");
  }
  const lookup = async (token: string): Promise<Record<string, unknown> | undefined> => {
    const answer = await vault.request("POST", "auth/token/lookup", { token });
    return answer.body["data"] as Record<string, unknown> | undefined;
  };
  const isRevoked = (token: string): Promise<unknown> =>
    until(
      async () => (await lookup(token).catch(() => undefined)) === undefined,
      () => stand.agent?.log() ?? "",
    );

  // They wait for the daemon most of the time.
  describe("each of another remote", { concurrency: true }, () => {
    it("a removed remote socket is noticed, and made again", async () => {
      await add("removed");
      const token = await borrowed("removed");
      await unlink(socketOf("removed"));
      const began = performance.now();
      const { reconnects } = await reaches("removed", (view) => isUp(view) && view.reconnects > 0);
      assert.ok(performance.now() - began < NOTICED_MS);
      assert.equal(reconnects, 1);
      await isRevoked(token);
      assert.equal((await borrow("removed")).status, 200);
    });

    it("a socket of another user is not used, and the forward is back once it is gone", async () => {
      await add("replaced");
      const token = await borrowed("replaced");
      const folder = join(temp.path, "nobody");
      await mkdir(folder);
      await chown(folder, NOBODY_UID, NOBODY_UID);
      await chmod(temp.path, 0o711);
      const [seen, made] = [join(folder, "seen"), join(folder, "socket")];
      const script = `require("net").createServer((connection) => connection.on("data", (data) => {
        require("fs").appendFileSync(${JSON.stringify(seen)}, data);
        connection.end('HTTP/1.1 200 OK\\r\\nContent-Length: 15\\r\\n\\r\\n{"nonce":"none"}');
      })).listen(${JSON.stringify(made)}, () => console.log("ready"))`;
      const [program = "", ...words] = asNobody;
      const other = spawnGroup(program, [...words, process.execPath, "-e", script], { cwd: "/" });
      try {
        await once(other.stdout ?? assert.fail("no output"), "data");
        await rename(made, socketOf("replaced"));
        const began = performance.now();
        const { state, proven, error } = await reaches("replaced", (view) => view.state === "offline");
        assert.ok(performance.now() - began < NOTICED_MS);
        assert.deepEqual([state, proven, error?.class], ["offline", false, "socket-bind"]);
        assert.match(error?.message ?? "", /replaced\/daemon\.sock: it belongs to another account$/);
        await isRevoked(token);
        // Programs of the remote account do not use it either.
        const remote = new Home(stand.sshd.home, { DISPLAY: ":none" });
        await remote.configure(
          `store: { address: "${vault.address}", username: ada, token_socket: [~/replaced/*.sock] }\n`,
        );
        assert.notEqual((await remote.agent(["browse", "https://example.com/hunter2"])).code, 0);
        assert.notEqual((await remote.agent(["sync"])).code, 0);
        const text = await readFile(seen, "utf8");
        const requests = text.split("\r\n\r\n").filter((each) => each !== "");
        assert.equal(requests.length, 2, "the two proofs while the forward was thought to be up");
        for (const each of requests) assert.match(each, /^GET \/healthz HTTP\/1\.1\r\n/);
        assert.doesNotMatch(text, /hunter2|hvs\.|authorization|cookie|token|nonce/i);
      } finally {
        other.kill();
        await once(other, "close");
      }
      // Its file is still there, and is not ours to remove.
      assert.equal((await viewOf("replaced")).state === "connected", false);
      await unlink(socketOf("replaced"));
      await reaches("replaced", isUp);
      assert.equal((await borrow("replaced")).status, 200);
    });

    it("a full disk of the remote host is named, and the forward is back with room", async () => {
      const disk = join(stand.sshd.home, "full");
      await mkdir(disk, { mode: 0o700 });
      const mounted = await run(
        "mount",
        ["-t", "tmpfs", "-o", `mode=0700,nr_inodes=${INODES}`, "full", disk],
        {},
      );
      assert.equal(mounted.code, 0, mounted.stderr);
      const fill = async (): Promise<void> => {
        for (let count = 0; count <= INODES; count++) {
          const fault = await writeFile(join(disk, `file${count}`), "").then(() => undefined, String);
          if (fault !== undefined) return assert.match(fault, /ENOSPC/);
        }
        assert.fail("the disk takes too many files");
      };
      /** Ends the forward, which removes its socket. */
      const disable = async (): Promise<void> => {
        assert.equal((await stand.call("PATCH", "/full", { enabled: false })).status, 200);
        await until(async () => !(await readdir(disk)).includes("daemon.sock"));
      };
      const isOffline = ({ state, error }: RemoteView): boolean => state === "offline" && error !== null;
      try {
        await add("full");
        const token = await borrowed("full");
        await disable();
        await isRevoked(token);
        await fill();
        assert.equal((await stand.call("PATCH", "/full", { enabled: true })).status, 200);
        const { state, error } = await reaches("full", isOffline);
        assert.deepEqual([state, error?.class], ["offline", "socket-folder"]);
        assert.match(error?.message ?? "", /full\/daemon\.sock: the disk of its folder is full$/);
        assert.match(error?.advice ?? "", /^Free space on full.* It is tried again by itself\.$/);
        await rm(join(disk, "file0"));
        await reaches("full", isUp);
        assert.equal((await borrow("full")).status, 200);

        // The folder of a socket needs room as well.
        await disable();
        await fill();
        const edit = { remote_socket: "~/full/sub/daemon.sock", enabled: true };
        assert.equal((await stand.call("PATCH", "/full", edit)).status, 200);
        const refused = await reaches("full", isOffline);
        assert.equal(refused.error?.class, "socket-folder");
        assert.match(refused.error?.message ?? "", /sub\/daemon\.sock: the disk of its folder is full$/);
      } finally {
        await stand.call("DELETE", "/full");
        await until(async () => (await run("umount", [disk], {})).code === 0);
      }
    });

    it("an error of lending goes when the store allows it, without another request", async () => {
      await vault.request("PUT", "sys/policies/acl/later", {
        policy: 'path "kv/*" { capabilities = ["read"] }',
      });
      await add("refused", { policies: ["later"] });
      assert.equal((await borrow("refused")).status, 403);
      assert.match((await viewOf("refused")).tokens.problem ?? "", /with these policies/);
      const { stdout } = await stand.ssh("list");
      assert.match(stdout, /^refused: no token is lent: /m);
      // The policy of the daemon's own token gets the right to lend any policy.
      const any = 'path "auth/token/create" { capabilities = ["update", "sudo"] }';
      await vault.request("PUT", "sys/policies/acl/lender", { policy: any });
      const { tokens: lent } = await reaches("refused", (view) => view.tokens.problem === null);
      assert.deepEqual(lent.lent, []);
      const token = await borrowed("refused");
      assert.deepEqual((await lookup(token))?.["policies"], ["default", "later"]);
      assert.equal((await stand.call("DELETE", "/refused")).status, 204);
      await isRevoked(token);
    });

    it("an edit of lending settings keeps the connection, and replaces the lent token", async () => {
      await add("edited");
      const token = await borrowed("edited");
      const unedited = await viewOf("edited");
      const args = ["edit", "edited", "--token-ttl", "1m", "--policies", "user"];
      assert.equal((await stand.ssh(...args)).code, 0);
      await isRevoked(token);
      const next = await borrowed("edited");
      const { explicit_max_ttl: ttl, policies } = (await lookup(next)) ?? {};
      assert.deepEqual([ttl, policies], [60, ["default", "user"]]);
      const { state, since, reconnects, token_ttl } = await viewOf("edited");
      assert.deepEqual(
        [state, since, reconnects, token_ttl],
        ["connected", unedited.since, unedited.reconnects, "1m"],
      );
      // Defaults that are written out change nothing.
      assert.equal((await stand.ssh("edit", "edited", "--lend", "child", "--ask", "never")).code, 0);
      assert.equal(await borrowed("edited"), next);
      // The same by hand.
      const text = await readFile(stand.file, "utf8");
      await writeFile(stand.file, text.replace("token_ttl: 1m", "token_ttl: 2m"));
      await isRevoked(next);
      assert.equal((await lookup(await borrowed("edited")))?.["explicit_max_ttl"], 120);
      assert.equal((await viewOf("edited")).since, unedited.since);
    });

    it("a second remote with the socket of the first is told whose it is", async () => {
      await add("first");
      const second = {
        host: "second",
        port: stand.sshd.port,
        host_key: stand.sshd.hostKey,
        remote_socket: "~/first/daemon.sock",
      };
      const dialled = await stand.call("POST", "", second);
      const { class: failure, detail, hint } = dialled.body as Record<string, string>;
      assert.deepEqual([dialled.status, failure], [422, "socket-bind"]);
      assert.match(detail ?? "", /first\/daemon\.sock: this daemon's own forward to first uses it\.$/);
      assert.equal(hint, "Choose another socket by 'agent ssh add second --socket PATH'.");
      assert.equal((await stand.call("POST", "", { ...second, force: true })).status, 201);
      const { error } = await reaches("second", (view) => view.state === "offline" && view.error !== null);
      assert.equal(error?.class, "socket-bind");
      assert.match(error?.message ?? "", /this daemon's own forward to first uses it$/);
      assert.match(error?.advice ?? "", /^Set another socket by 'agent ssh edit second --socket PATH'/);
      assert.ok(isUp(await viewOf("first")));
      assert.equal((await stand.ssh("edit", "second", "--socket", "~/second/daemon.sock")).code, 0);
      await reaches("second", isUp);
    });
  });

  it("leave no lent token in the store after the end of the daemon", async () => {
    assert.ok((await tokens()) > own);
    assert.equal(await stand.agent?.stop(), 0);
    assert.equal(await tokens(), own);
  });
});

describe("a new pin for a server that is slow", { timeout: TIMEOUT_MS }, () => {
  it("is tried before the command ends, which does not print the former error", async () => {
    // SFTP never answers, so that each connection takes 10 s before the daemon goes on without it.
    await using stand = await SshStand.start({ sftp: "/bin/sleep 30" });
    await stand.startAgent();
    const host = stand.sshd.address;
    await stand.call("POST", "", {
      host,
      port: stand.sshd.port,
      host_key: stand.sshd.hostKey.replace(/.{8}$/, "AAAAAAAA"),
      remote_socket: join(stand.sshd.home, "daemon.sock"),
      force: true,
    });
    const { error } = await stand.state("host-key-error");
    const { code, stdout } = await stand.ssh("add", host, "--repin", "--accept-host-key");
    assert.equal(code, 0);
    assert.match(stdout, /^state +connected$/m);
    assert.doesNotMatch(stdout, new RegExp(`^error|${RegExp.escape(error?.message ?? "")}`, "m"));
  });
});
