import assert from "node:assert/strict";
import { once } from "node:events";
import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { checkActivated, listenOnPath } from "./socket-place.ts";

describe("listenOnPath", () => {
  let folder: string;
  const servers: Server[] = [];
  const server = (): Server => {
    const made = createServer();
    servers.push(made);
    return made;
  };
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "agent-place-"));
  });
  afterEach(async () => {
    for (const each of servers.splice(0)) each.close();
    await rm(folder, { recursive: true });
  });
  const path = (): string => join(folder, "own/api.sock");

  /** A socket file that nobody listens on, as a killed daemon leaves it behind. */
  async function leaveStale(): Promise<void> {
    const dead = createServer().listen(join(folder, "dead"));
    await once(dead, "listening");
    await mkdir(join(folder, "own"), { mode: 0o700 });
    await link(join(folder, "dead"), path());
    dead.close();
    await once(dead, "close");
  }

  it("the socket has mode 0600 in a 0700 folder with any umask, and no temporary file", async () => {
    const before = process.umask(0);
    try {
      await listenOnPath(server(), path());
    } finally {
      process.umask(before);
    }
    assert.equal((await lstat(path())).mode & 0o777, 0o600);
    assert.equal((await lstat(join(folder, "own"))).mode & 0o777, 0o700);
    assert.deepEqual(await readdir(join(folder, "own")), ["api.sock"]);
  });

  it("a stale socket is replaced", async () => {
    await leaveStale();
    const { ino } = await lstat(path());
    await listenOnPath(server(), path());
    assert.notEqual((await lstat(path())).ino, ino);
  });

  it("a socket with a listener stays: a second daemon is refused", async () => {
    await listenOnPath(server(), path());
    const { ino } = await lstat(path());
    await assert.rejects(listenOnPath(server(), path()), { code: "socket_in_use" });
    assert.equal((await lstat(path())).ino, ino);
  });

  it("a symlink is refused with every target, and the target stays", async () => {
    await mkdir(join(folder, "own"), { mode: 0o700 });
    await writeFile(join(folder, "precious"), "kept");
    for (const target of ["precious", "nothing"]) {
      await symlink(join(folder, target), path());
      await assert.rejects(listenOnPath(server(), path()), {
        code: "socket_refused",
        message: /there is a file that is not a socket/,
      });
      await rm(path());
    }
    assert.equal(await readFile(join(folder, "precious"), "utf8"), "kept");
  });

  it("a file or folder in its place is refused, and stays", async () => {
    await mkdir(path(), { recursive: true, mode: 0o700 });
    await assert.rejects(listenOnPath(server(), path()), { code: "socket_refused" });
    await rm(path(), { recursive: true });
    await writeFile(path(), "kept");
    await assert.rejects(listenOnPath(server(), path()), { code: "socket_refused" });
    assert.equal(await readFile(path(), "utf8"), "kept");
  });

  it("a folder that others can reach is refused, and keeps its mode", async () => {
    await mkdir(join(folder, "own"));
    for (const mode of [0o755, 0o701, 0o770]) {
      await chmod(join(folder, "own"), mode);
      await assert.rejects(listenOnPath(server(), path()), { message: /others can reach its folder/ });
      assert.equal((await lstat(join(folder, "own"))).mode & 0o777, mode);
    }
  });

  it("a path too long for a socket is refused by its length", async () => {
    await assert.rejects(listenOnPath(server(), join(folder, "x".repeat(120))), {
      message: /longer than \d+ bytes/,
    });
  });

  it("the end takes the file away, but not the one that another daemon has put there", async () => {
    const first = await listenOnPath(server(), path());
    await first.remove();
    await assert.rejects(lstat(path()), { code: "ENOENT" });
    const second = await listenOnPath(server(), path());
    await first.remove();
    assert.ok((await lstat(path())).isSocket());
    await second.remove();
  });
});

describe("checkActivated", () => {
  it("refuses a supervisor's socket unless its mode or its folder keeps others out", async () => {
    const folder = await mkdtemp(join(tmpdir(), "agent-place-"));
    const path = join(folder, "s");
    const server = createServer().listen(path);
    await once(server, "listening");
    const modes: [number, number, boolean][] = [
      [0o600, 0o755, true],
      [0o666, 0o700, true],
      [0o666, 0o755, false],
      [0o620, 0o710, false],
    ];
    for (const [socketMode, folderMode, allowed] of modes) {
      await chmod(path, socketMode);
      await chmod(folder, folderMode);
      const checked = checkActivated(path);
      if (allowed) assert.equal(await checked, path);
      else await assert.rejects(checked, { code: "socket_refused", message: /others can reach it/ });
    }
    server.close();
    await rm(folder, { recursive: true });
    await assert.rejects(checkActivated(path), { code: "socket_refused" });
  });

  it("refuses an abstract socket, because every user can reach it", async () => {
    await assert.rejects(checkActivated(undefined), { code: "socket_refused" });
  });
});
