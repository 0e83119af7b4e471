import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { lstat, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, before, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import fc from "fast-check";
import { ForwardError } from "../errors/forward-error.ts";
import { isFolder, isSocket, packet, PacketReader, PacketSplitter, SFTP } from "./packets.ts";
import { SftpRefusal, SftpSession } from "./session.ts";

const SERVERS = [
  "/usr/lib/openssh/sftp-server",
  "/usr/libexec/openssh/sftp-server",
  "/usr/libexec/sftp-server",
];
const isFailure = (error: unknown): boolean => error instanceof ForwardError && error.code === "sftp_failed";

describe("SFTP with OpenSSH's server", () => {
  let folder: TempFolder;
  let session: SftpSession;
  before(async () => {
    folder = await tempFolder("sftp");
    const program = await Promise.any(
      SERVERS.map(async (path) => ((await lstat(path)).isFile() ? path : assert.fail())),
    );
    session = await SftpSession.open(spawn(program, [], { cwd: folder.path, stdio: "pipe" }));
  });
  after(async () => {
    session.close();
    await folder.remove();
  });

  it("finds the home folder, makes folders with a mode, looks at links, and removes", async () => {
    assert.equal(await session.realpath("."), folder.path);
    const inner = join(folder.path, "a b é\n");
    await session.mkdir(inner, 0o700);
    const found = (await session.lstat(inner)) ?? assert.fail();
    assert.ok(isFolder(found) && !isSocket(found));
    assert.deepEqual([(found.mode ?? 0) & 0o777, found.uid], [0o700, process.geteuid?.()]);
    await symlink("a b é\n", join(folder.path, "link"));
    const link = (await session.lstat(join(folder.path, "link"))) ?? assert.fail();
    assert.ok(!isFolder(link));
    await session.remove(join(folder.path, "link"));
    assert.equal(await session.lstat(join(folder.path, "link")), undefined);
    assert.deepEqual(await readdir(folder.path), ["a b é\n"]);
  });

  it("a refusal names the action, and the session goes on", async () => {
    await mkdir(join(folder.path, "full"));
    await writeFile(join(folder.path, "full/file"), "");
    const refused = (error: unknown): boolean =>
      error instanceof SftpRefusal && /Cannot make the folder/.test(error.message);
    await assert.rejects(session.mkdir(join(folder.path, "full"), 0o700), refused);
    await assert.rejects(session.remove(join(folder.path, "full")), SftpRefusal);
    assert.equal(await session.realpath("."), folder.path);
  });
});

/** A server whose answers a test writes. */
class FakeServer extends EventEmitter {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();

  kill(): boolean {
    return true;
  }

  /** A session with it that has begun, if the answer to the first request is this. */
  open(first: Buffer = packet(SFTP.version, 3)): Promise<SftpSession> {
    const opening = SftpSession.open(this as unknown as ChildProcess);
    this.stdout.write(first);
    return opening;
  }
}

describe("SFTP with a server that is broken or hostile", () => {
  it("another version, another protocol and no answer at all end the session", async () => {
    for (const first of [packet(SFTP.version, 2), packet(SFTP.status, 3), Buffer.from("SSH-2.0-x\r\n")]) {
      await assert.rejects(new FakeServer().open(first), isFailure);
    }
    const gone = new FakeServer();
    const opening = gone.open(Buffer.alloc(0));
    gone.emit("close");
    await assert.rejects(opening, isFailure);
  });

  it("an answer that does not fit the request, or has a wrong length, is a failure", async () => {
    const oversized = Buffer.alloc(8, 0xff);
    for (const answer of [
      packet(SFTP.status, 7, 0, "", ""),
      packet(SFTP.name, 1, 2, "/a", "", 0, "/b", "", 0),
      packet(SFTP.attributes, 1, 0),
      packet(SFTP.name, 1, 1).subarray(0, 12),
      packet(SFTP.name, 1, 1, 0x7f_ff_ff_ff),
      oversized,
    ]) {
      const server = new FakeServer();
      const session = await server.open();
      const asked = session.realpath(".");
      server.stdout.write(answer);
      server.stdout.end();
      if (answer.length === 12) server.emit("close");
      await assert.rejects(asked, isFailure);
      session.close();
    }
  });

  it("any bytes are packets or a fault, however they are cut", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 })), fc.nat(20), (chunks, cut) => {
        const bytes = Buffer.concat(
          chunks.map((chunk) => Buffer.concat([Buffer.of(0, 0, 0, chunk.length + 1, 1), chunk])),
        );
        const splitter = new PacketSplitter();
        const found = [...splitter.push(bytes.subarray(0, cut)), ...splitter.push(bytes.subarray(cut))];
        assert.deepEqual(
          found,
          chunks.map((chunk) => Buffer.concat([Buffer.of(1), chunk])),
        );
        for (const each of found) {
          const reader = new PacketReader(each);
          reader.byte();
          try {
            reader.attributes();
            reader.text();
          } catch (error) {
            assert.equal((error as Error).constructor.name, "PacketError");
          }
        }
      }),
    );
  });
});
