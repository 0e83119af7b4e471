import assert from "node:assert/strict";
import { once } from "node:events";
import { cp, readdir, rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { after, before, beforeEach, describe, it } from "node:test";
import { FetchResponseWalker, ProtocolError } from "@devplat/git-protocol";
import { git, repositories } from "@devplat/testkit";
import {
  emptied,
  flip,
  folder,
  missing,
  swapped,
  truncated,
  unreadable,
  zeroFilled,
  type Damage,
} from "./damage-kinds.ts";
import { command, contentOf, startStand, type Answer, type Stand } from "./svc-git-stand.ts";
import { beginFetch, finishFetch } from "./svc-slow-fetch.ts";

/** More than the service keeps in memory of an answer that was sent once, and than sockets hold. */
const PACK_BYTES = 16 * 2 ** 20;
/** Bytes that a client has when the file changes. Buffers of the system hold less than the rest. */
const RELAYED_BYTES = 2 ** 20;
const MAX_PACKET_BYTES = 65_520;
/** Bytes at the end of a response file for its 129 checksums and its footer. */
const TRAILER_BYTES = 129 * 4 + 52;

/** The bytes of the pack in an answer, as far as they go, and the error that ends it. */
function packOf({ body }: Pick<Answer, "body">): { readonly pack: Buffer; readonly error: string } {
  const parts: Buffer[] = [];
  const walker = new FetchResponseWalker({ pack: (bytes) => parts.push(bytes) });
  try {
    walker.push(body);
    return { pack: Buffer.concat(parts), error: walker.complete ? "" : "it ends early" };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { pack: Buffer.concat(parts), error: body.subarray(body.lastIndexOf(3) + 1).toString() };
  }
}

const OWN_ERROR = /^svc: stored data of this repository cannot be read; try again\n(?:0000)?$/;

/** @returns the length without the zeros at the end */
function lengthWithoutZeros(bytes: Buffer): number {
  let length = bytes.length;
  while (length > 0 && bytes[length - 1] === 0) length--;
  return length;
}

/**
 * Relays connections to the service.
 *
 * @param pauseAfter bytes of one connection to the client after which it waits once for `whilePaused`
 */
async function startRelay(
  target: string,
  pauseAfter: number,
  whilePaused: () => Promise<void>,
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { hostname, port } = new URL(target);
  let paused = false;
  const server = createServer((client) => {
    const service = connect(Number(port), hostname);
    let relayed = 0;
    const toClient = async function* (bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of bytes) {
        yield chunk;
        relayed += chunk.length;
        if (paused || relayed < pauseAfter) continue;
        paused = true;
        await whilePaused();
      }
    };
    const ignore = (): void => undefined;
    pipeline(client, service).catch(ignore);
    pipeline(service, toClient, client).catch(ignore);
  });
  server.listen(0, hostname);
  await once(server, "listening");
  return {
    url: `http://${hostname}:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.close();
      await once(server, "close");
    },
  };
}

describe("a damaged stored response", () => {
  let stand: Stand;
  let source = "";
  let fetch: Buffer;
  let other: Buffer;
  let expected: Buffer;
  const responses = (): string => join(stand.storagePath, "_responses", "org", "one");
  const kept = async (): Promise<string[]> =>
    (await readdir(responses())).filter((name) => /^[0-9a-f]{64}$/.test(name));
  /** The file of the fetch that is tested. */
  let file = "";
  let pristine = "";
  /** A valid file, of another request. */
  let otherFile = "";

  before(async () => {
    stand = await startStand();
    const { path } = await stand.codeHost.addRepository("org", "one", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: PACK_BYTES }),
    });
    source = path;
    stand.list("org", "one");
    await stand.post("org/one", command("ls-refs", ["ref-prefix refs/heads/"]));
    const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    fetch = command("fetch", ["no-progress", "ofs-delta", `want ${oid}`, "done"]);
    other = command("fetch", [
      "no-progress",
      "thin-pack",
      "ofs-delta",
      "filter blob:none",
      `want ${oid}`,
      "done",
    ]);
    expected = packOf(await stand.post("org/one", fetch)).pack;
    assert.ok(expected.length > PACK_BYTES);
    await stand.cache.settled();
    // The second use of a response stores it as it is sent.
    await stand.post("org/one", fetch);
    await stand.cache.settled();
    const [name = ""] = await kept();
    file = join(responses(), name);
    for (let uses = 0; uses < 2; uses++) {
      await stand.post("org/one", other);
      await stand.cache.settled();
    }
    pristine = join(stand.storagePath, "pristine");
    await cp(file, pristine);
    otherFile = join(
      responses(),
      (await kept()).find((one) => one !== name)!,
    );
  });
  after(() => stand.stop());
  /** Each test begins with an undamaged file, and without quarantined files. */
  beforeEach(async () => {
    await stand.cache.settled();
    const inUse = new Set([file, otherFile, join(responses(), "origin.json")]);
    for (const name of await readdir(responses())) {
      if (!inUse.has(join(responses(), name))) await rm(join(responses(), name), { recursive: true });
    }
    await rm(file, { recursive: true, force: true });
    await cp(pristine, file);
    // It would answer in the file's place.
    await rm(join(stand.storagePath, "org"), { recursive: true, force: true });
    stand.log.length = 0;
  });

  const kinds: readonly Damage[] = [
    flip("its first packet", () => 10),
    flip("its middle", (bytes) => bytes.length >> 1),
    flip("the last packet", () => -TRAILER_BYTES - 30),
    flip("the flush-pkt", () => -TRAILER_BYTES - 1),
    flip("the checksums", () => -TRAILER_BYTES + 5),
    flip("the footer", () => -20),
    truncated,
    emptied,
    zeroFilled,
    missing,
    folder,
    unreadable,
    swapped(() => otherFile),
  ];

  /** @returns whether the whole pack came; otherwise a part of it, and this service's own error */
  const isWhole = (answer: Pick<Answer, "body">): boolean => {
    const { pack, error } = packOf(answer);
    if (error === "" && pack.equals(expected)) return true;
    assert.match(error, OWN_ERROR);
    // Zeros end the packet that was on its way, so that the error can follow.
    const sent = lengthWithoutZeros(pack);
    assert.ok(pack.length - sent < MAX_PACKET_BYTES);
    assert.ok(pack.subarray(0, sent).equals(expected.subarray(0, sent)));
    return false;
  };
  const told = (lines: Stand["log"]): number =>
    lines.filter(({ message }) => message === "a stored response is damaged and no longer used").length;

  for (const kind of kinds) {
    it(`is not sent by a process that starts later (${kind.name}) [svc 2.29]`, async () => {
      await kind.apply(file);
      const next = await startStand({
        storagePath: stand.storagePath,
        hostUrl: stand.codeHost.url,
        listed: ["one"],
      });
      try {
        stand.codeHost.resetCalls();
        const [first, second] = await Promise.all([1, 2].map(() => next.post("org/one", fetch)));
        for (const answer of [first, second]) assert.ok(isWhole(answer!));
        assert.equal(stand.upstream("fetch"), 1);
        await next.cache.settled();
        assert.equal(told(next.log), kind === missing ? 0 : 1);
        const aside = (await readdir(responses())).filter((name) => name.endsWith("~"));
        assert.equal(aside.length, kind === missing ? 0 : 1);
        assert.equal((await next.post("org/one", fetch)).headers["x-svc-cache"], "hit");
        assert.equal(stand.upstream("fetch"), 1);
      } finally {
        await next.stop();
      }
    });

    it(`is not sent by a process that has served it (${kind.name})`, async () => {
      assert.ok(isWhole(await stand.post("org/one", fetch)));
      await kind.apply(file);
      stand.codeHost.resetCalls();
      isWhole(await stand.post("org/one", fetch));
      await stand.cache.settled();
      assert.ok(isWhole(await stand.post("org/one", fetch)));
      await stand.cache.settled();
      assert.ok(told(stand.log) <= 1);
      assert.ok(stand.log.every(({ message }) => !/code host/.test(String(message))));
    });
  }

  it("while sending ends in an error that names this service, and the next is right [svc 2.29]", async () => {
    const response = await beginFetch(stand, "org/one", fetch);
    await flip("", () => -TRAILER_BYTES - 30).apply(file);
    const body = await finishFetch(response);
    assert.equal(isWhole({ body }), false);
    await stand.cache.settled();
    assert.ok(isWhole(await stand.post("org/one", fetch)));
  });

  it("shows stock git the reason, and its next clone is right [svc 2.29]", async () => {
    const clone = (to: string): ReturnType<Stand["git"]> =>
      stand.git(["clone", "-q", "--bare", `${stand.url}/org/one`, to]);
    for (const to of ["git-1", "git-1-again"]) {
      assert.equal((await clone(to)).code, 0);
      await stand.cache.settled();
    }
    const names = await kept();
    // It changes while the client has a part of it.
    const relay = await startRelay(stand.url, RELAYED_BYTES, async () => {
      for (const name of names) {
        await flip("", (bytes) => Math.max(10, bytes.length - TRAILER_BYTES - 200)).apply(
          join(responses(), name),
        );
      }
    });
    const broken = await stand.git(["clone", "-q", "--bare", `${relay.url}/org/one`, "git-2"]);
    await relay.stop();
    assert.notEqual(broken.code, 0);
    assert.match(broken.stderr, /svc: stored data of this repository cannot be read; try again/);
    assert.doesNotMatch(broken.stderr, /127\.0\.0\.1:\d+ broke off|code host/);
    const again = await clone("git-3");
    assert.equal(again.code, 0, again.stderr);
    assert.equal(await contentOf(stand.folder("git-3")), await contentOf(source));
  });

  it("whose folder does not say where it came from is served all the same", async () => {
    const origin = join(responses(), "origin.json");
    const soundOrigin = join(stand.storagePath, "origin.json");
    await cp(origin, soundOrigin);
    for (const kind of [flip("it", () => 15), truncated, missing, folder, unreadable]) {
      await rm(origin, { recursive: true, force: true });
      await cp(soundOrigin, origin);
      await kind.apply(origin);
      const next = await startStand({
        storagePath: stand.storagePath,
        hostUrl: stand.codeHost.url,
        listed: ["one"],
      });
      try {
        stand.codeHost.resetCalls();
        const answer = await next.post("org/one", fetch);
        assert.ok(isWhole(answer), kind.name);
        assert.equal(stand.upstream("fetch"), 0, kind.name);
      } finally {
        await next.stop();
      }
    }
  });
});
