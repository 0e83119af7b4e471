import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import {
  FLUSH_PKT,
  SIDE_BAND,
  decodeFetchRequest,
  encodeErrorLine,
  encodeFetchResponse,
  encodeLsRefsResponse,
  encodeSideBand,
} from "@devplat/git-protocol";
import { AnswerCheck } from "./answer-check.ts";
import { Flight, FlightCut, type FlightReader } from "./flight.ts";
import { Grants, grantKey } from "./grants.ts";
import { isStorable, repositoryId } from "./repository-id.ts";
import { isStorableRequest, responseKey } from "./response-key.ts";
import { Slices } from "./slices.ts";
import { UpstreamSlots } from "./slots.ts";
import { Tips } from "./tips.ts";

class ManualClock implements Clock {
  ms = 1_000_000;
  now(): number {
    return this.ms;
  }
  monotonic(): number {
    return this.ms;
  }
  sleep(): Promise<void> {
    return Promise.resolve();
  }
}

const oid = (digit: string): string => digit.repeat(40);
const refs = (...lines: [string, string, string?][]): Buffer =>
  encodeLsRefsResponse(
    lines.map(([id, name, peeled]) => ({
      oid: oid(id),
      name,
      symrefTarget: undefined,
      peeled: peeled && oid(peeled),
      unknown: [],
    })),
  );

describe("Tips", () => {
  const fresh = (): { tips: Tips; clock: ManualClock } => {
    const clock = new ManualClock();
    return { tips: new Tips(600, clock), clock };
  };

  it("knows the objects of a yes, peeled ones too, for tips_seconds", () => {
    const { tips, clock } = fresh();
    tips.note([], refs(["a", "HEAD"], ["b", "refs/tags/v1", "c"]));
    assert.deepEqual(
      ["a", "b", "c", "d"].map((id) => tips.isTip(oid(id))),
      [true, true, true, false],
    );
    clock.ms += 600_001;
    assert.equal(tips.isTip(oid("a")), false);
    assert.equal(tips.note([], refs(["a", "HEAD"], ["b", "refs/tags/v1", "c"])), "same");
    assert.equal(tips.isTip(oid("a")), true);
  });

  it("a yes replaces what its own prefixes cover, and nothing else", () => {
    const { tips } = fresh();
    tips.note([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"], ["c", "refs/tags/v1"]));
    assert.equal(tips.note(["refs/heads/"], refs(["a", "refs/heads/main"])), "same");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [true, false, true],
    );
  });

  it("a yes that speaks of every known name and agrees on none contradicts, and older tips are forgotten", () => {
    const { tips } = fresh();
    tips.note([], refs(["a", "refs/heads/main"], ["b", "refs/tags/v1"], ["a", "HEAD"]));
    assert.equal(tips.note(["refs/"], refs(["c", "refs/heads/main"])), "contradicted");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [false, false, true],
    );
  });

  it("a yes that agrees on nothing puts the names outside of it in doubt, until one speaks of them", () => {
    const { tips } = fresh();
    tips.note([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"], ["a", "HEAD"]));
    assert.equal(tips.note(["HEAD"], refs(["c", "HEAD"])), "unproven");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [false, false, true],
    );
    assert.equal(tips.note(["HEAD"], refs(["c", "HEAD"])), "same");
    assert.equal(tips.isTip(oid("b")), false);
    // One that agrees with a tip in doubt speaks for all of them.
    assert.equal(tips.note(["refs/heads/dev"], refs(["b", "refs/heads/dev"])), "same");
    assert.deepEqual(
      ["a", "b", "c"].map((id) => tips.isTip(oid(id))),
      [true, true, true],
    );
  });

  it("a yes that speaks of all names in doubt and agrees on none contradicts", () => {
    const { tips } = fresh();
    tips.note([], refs(["a", "refs/heads/main"], ["b", "refs/tags/v1"], ["a", "HEAD"]));
    assert.equal(tips.note(["HEAD"], refs(["c", "HEAD"])), "unproven");
    assert.equal(tips.note(["refs/heads/"], refs(["c", "refs/heads/main"])), "same");
    assert.equal(tips.note(["refs/tags/"], refs(["c", "refs/tags/v1"])), "contradicted");
    assert.equal(tips.isTip(oid("b")), false);
  });

  it("a tip in doubt ends by age like any other", () => {
    const { tips, clock } = fresh();
    tips.note([], refs(["a", "refs/heads/main"], ["b", "refs/heads/dev"]));
    tips.note(["HEAD"], refs(["c", "HEAD"]));
    clock.ms += 600_001;
    tips.note(["refs/heads/dev"], refs(["b", "refs/heads/dev"]));
    assert.equal(tips.isTip(oid("a")), false);
    assert.equal(tips.isTip(oid("b")), true);
  });

  it("an empty answer shares nothing with the known tips: they are doubted, and it is another identity", () => {
    const { tips } = fresh();
    assert.equal(tips.note(["refs/notes/"], refs()), "same");
    const { identity } = tips;
    tips.note(["refs/heads/"], refs(["a", "refs/heads/main"]));
    assert.equal(tips.identity, identity);
    assert.equal(tips.note(["refs/notes/"], refs()), "unproven");
    assert.equal(tips.isTip(oid("a")), false);
    assert.notEqual(tips.identity, identity);
  });

  it("the digest of the tags exists only while a recent yes covers all of them, and follows them", () => {
    const { tips, clock } = fresh();
    tips.note(["refs/heads/"], refs(["a", "refs/heads/main"]));
    assert.equal(tips.tagsDigest(), undefined);
    tips.note(["refs/heads/", "refs/tags/"], refs(["a", "refs/heads/main"], ["b", "refs/tags/v1"]));
    const first = tips.tagsDigest();
    assert.equal(typeof first, "string");
    tips.note(["refs/heads/", "refs/tags/"], refs(["a", "refs/heads/main"], ["c", "refs/tags/v1"]));
    assert.notEqual(tips.tagsDigest(), first);
    clock.ms += 600_001;
    assert.equal(tips.tagsDigest(), undefined);
  });
});

describe("Grants", () => {
  const key = grantKey("Basic x", "https://h", repositoryId("o", "r"));

  it("differ by credential, code host and repository, and not by case of the name", () => {
    const keys = [
      key,
      grantKey(undefined, "https://h", repositoryId("o", "r")),
      grantKey("Basic y", "https://h", repositoryId("o", "r")),
      grantKey("Basic x", "https://i", repositoryId("o", "r")),
      grantKey("Basic x", "https://h", repositoryId("o", "s")),
    ];
    assert.equal(new Set(keys).size, keys.length);
    assert.equal(grantKey("Basic x", "https://h", repositoryId("O", "R")), key);
    // U+212A, the Kelvin sign, is no k.
    assert.notEqual(
      grantKey("Basic x", "https://h", repositoryId("\u212a", "r")),
      grantKey("Basic x", "https://h", repositoryId("k", "r")),
    );
    assert.doesNotMatch(keys.join(), /Basic/);
  });

  it("last for their seconds from when the question was sent", () => {
    const clock = new ManualClock();
    const grants = new Grants(30, clock);
    const askedAt = grants.now();
    clock.ms += 10_000;
    grants.allow(key, askedAt);
    clock.ms += 19_999;
    assert.equal(grants.has(key), true);
    clock.ms += 1;
    assert.equal(grants.has(key), false);
  });

  it("a refusal ends a grant at once, and outweighs a yes that was asked for before it", () => {
    const clock = new ManualClock();
    const grants = new Grants(30, clock);
    const askedAt = grants.now();
    grants.refuse(key);
    grants.allow(key, askedAt);
    assert.equal(grants.has(key), false);
    clock.ms += 1;
    grants.allow(key, grants.now());
    assert.equal(grants.has(key), true);
  });

  it("0 seconds keep no yes", () => {
    const grants = new Grants(0, new ManualClock());
    grants.allow(key, grants.now());
    assert.equal(grants.has(key), false);
  });
});

describe("responseKey", () => {
  const keyOf = (args: string[], capabilities: string[] = [], tags?: string): string => {
    const fetch = decodeFetchRequest({ command: "fetch", capabilities, args }, "sha1");
    return responseKey({ format: "sha1", capabilities, fetch, resolved: [], tags });
  };
  const base = [`want ${oid("a")}`, `want ${oid("b")}`, "done"];

  it("is the same whatever the order, duplicates, agent and session-id", () => {
    assert.equal(
      keyOf(
        ["done", `want ${oid("b")}`, `want ${oid("a")}`, `want ${oid("b")}`],
        ["agent=x", "session-id=1"],
      ),
      keyOf(base, ["agent=y"]),
    );
  });

  it("differs by everything that may change the answer", () => {
    const keys = [
      keyOf(base),
      keyOf(base.slice(1)),
      keyOf([...base, "no-progress"]),
      keyOf([...base, "thin-pack"]),
      keyOf([...base, "ofs-delta"]),
      keyOf([...base, "include-tag"]),
      keyOf([...base, "include-tag"], [], "digest"),
      keyOf([...base, "deepen 1"]),
      keyOf([...base, "deepen 1", "deepen-relative"]),
      keyOf([...base, "deepen-since 1"]),
      keyOf([...base, "filter blob:none"]),
      keyOf([...base, `shallow ${oid("c")}`]),
      keyOf([...base, `have ${oid("c")}`]),
      keyOf([...base, "unheard-of"]),
      keyOf(base, ["server-option=x"]),
    ];
    assert.equal(new Set(keys).size, keys.length);
    for (const key of keys) assert.match(key, /^[0-9a-f]{64}$/);
  });

  it("requests that must not be stored are told apart", () => {
    const storable = (args: string[]): boolean =>
      isStorableRequest(decodeFetchRequest({ command: "fetch", capabilities: [], args }, "sha1"));
    assert.equal(storable(base), true);
    assert.equal(storable(["want-ref refs/heads/main"]), true);
    for (const arg of ["unheard-of", "sideband-all", "packfile-uris https", "want HEAD"]) {
      assert.equal(storable([...base, arg]), false, arg);
    }
    assert.equal(storable(["done"]), false);
  });
});

describe("repositoryId", () => {
  it("only names that are safe as folders may be stored", () => {
    for (const [owner, name] of [
      ["a", "b"],
      ["A-1", "b.c_d"],
      ["o", ".github"],
    ] as const) {
      assert.equal(isStorable(repositoryId(owner, name)), true, owner);
    }
    for (const [owner, name] of [
      ["_responses", "b"],
      [".removed~", "b"],
      ["..", "b"],
      ["a/b", "c"],
      ["a", "b/c"],
      ["a", "b c"],
      ["a".repeat(200), "b"],
    ] as const) {
      assert.equal(isStorable(repositoryId(owner, name)), false, owner);
    }
  });
});

/** A whole answer with a sound pack of that many bytes of content. */
function answerOf(bytes: number): Buffer {
  const head = Buffer.from("PACK\0\0\0\u0002\0\0\0\u0001", "latin1");
  const content = Buffer.concat([head, Buffer.alloc(bytes, "x")]);
  const pack = Buffer.concat([content, createHash("sha1").update(content).digest()]);
  return encodeFetchResponse([{ name: "packfile", packets: encodeSideBand(SIDE_BAND.pack, pack) }]);
}

describe("AnswerCheck", () => {
  const verdictOf = (bytes: Buffer, step: number): string | undefined => {
    const check = new AnswerCheck("sha1");
    for (let at = 0; at < bytes.length; at += step) check.push(bytes.subarray(at, at + step));
    return check.verdict();
  };

  it("takes a whole answer, however it is cut", () => {
    for (const step of [1, 7, 19, 20, 21, 1000, 1_000_000])
      assert.equal(verdictOf(answerOf(5000), step), undefined);
  });

  it("refuses every single flipped byte and every truncation", () => {
    const whole = answerOf(60);
    for (let at = 0; at < whole.length; at++) {
      const flipped = Buffer.from(whole);
      flipped[at] = (flipped[at] ?? 0) ^ 0x40;
      assert.notEqual(verdictOf(flipped, 1000), undefined, `byte ${at}`);
      assert.notEqual(verdictOf(whole.subarray(0, at), 1000), undefined, `cut at ${at}`);
    }
  });

  it("refuses answers without a packfile, with an error, or with bytes after the end", () => {
    const whole = answerOf(10);
    for (const bytes of [
      encodeFetchResponse([{ name: "acknowledgments", lines: ["NAK"] }]),
      encodeErrorLine("no"),
      Buffer.concat([whole, FLUSH_PKT]),
      Buffer.concat([whole.subarray(0, -4), encodeSideBand(SIDE_BAND.error, Buffer.from("late")), FLUSH_PKT]),
    ]) {
      assert.notEqual(verdictOf(bytes, 1000), undefined);
    }
  });
});

describe("UpstreamSlots", () => {
  const WAIT_MS = 60_000;
  const never = new AbortController().signal;

  it("give two turns per repository, in order, and so many over all", async () => {
    const slots = new UpstreamSlots(3);
    const a1 = await slots.acquire("a", never, WAIT_MS);
    await slots.acquire("a", never, WAIT_MS);
    const order: string[] = [];
    const third = slots.acquire("a", never, WAIT_MS).then(() => order.push("a"));
    await slots.acquire("b", never, WAIT_MS);
    const other = slots.acquire("c", never, WAIT_MS).then(() => order.push("c"));
    await Promise.resolve();
    assert.deepEqual(order, []);
    a1?.();
    a1?.();
    await third;
    assert.deepEqual(order, ["a"]);
    assert.equal(await Promise.race([other.then(() => "c"), Promise.resolve("waiting")]), "waiting");
  });

  it("whoever gives up leaves the queue, and its turn is not lost", async () => {
    const slots = new UpstreamSlots(1);
    const running = await slots.acquire("a", never, WAIT_MS);
    const controller = new AbortController();
    const left = slots.acquire("b", controller.signal, WAIT_MS);
    const next = slots.acquire("c", never, WAIT_MS);
    assert.equal(await slots.acquire("d", never, 0), undefined, "no time is left");
    controller.abort();
    assert.equal(await left, undefined);
    running?.();
    assert.equal(typeof (await next), "function");
  });
});

describe("Flight", () => {
  const drain = async (reader: FlightReader): Promise<Buffer> => {
    const parts: Buffer[] = [];
    for (;;) {
      const part = await reader.read();
      if (part === undefined) return Buffer.concat(parts);
      if (part.kind === "stored") {
        parts.push(Buffer.from(part.slice.bytes));
        part.slice.release();
      } else parts.push(...part.chunks);
    }
  };
  async function* chunksOf(bytes: Buffer, step: number, cutAt = Infinity): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += step) {
      if (at >= cutAt) throw new Error("cut");
      yield bytes.subarray(at, at + step);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const withFile = async (action: (fd: number) => Promise<void>): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), "flight-"));
    const handle = await open(join(folder, "f"), "wx+");
    try {
      await action(handle.fd);
    } finally {
      await handle.close();
      await rm(folder, { recursive: true });
    }
  };

  it("gives every reader the whole answer, from the beginning, whenever it joined", async () => {
    await withFile(async (fd) => {
      const answer = answerOf(100_000);
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      const first = drain(flight.join());
      const run = flight.run(chunksOf(answer, 1500), fd);
      assert.equal(await flight.shared, true);
      const second = drain(flight.join());
      assert.deepEqual(await run, {
        storable: true,
        reason: undefined,
        diskError: undefined,
        bytes: answer.length,
      });
      const third = drain(flight.join());
      for (const read of [first, second, third]) assert.ok((await read).equals(answer));
    });
  });

  it("gives readers of any speed the same bytes, from memory, slices of the file and what has just arrived", async () => {
    await withFile(async (fd) => {
      const answer = answerOf(5_000_000);
      const slices = new Slices();
      const flight = new Flight(new AnswerCheck("sha1"), slices);
      const kinds = new Set<string>();
      const readSlowly = async (reader: FlightReader, turns: number): Promise<Buffer> => {
        const parts: Buffer[] = [];
        for (let part = await reader.read(); part !== undefined; part = await reader.read()) {
          kinds.add(part.kind);
          if (part.kind === "live") parts.push(...part.chunks);
          else {
            for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
            // Only now: nobody may have changed it meanwhile.
            parts.push(Buffer.from(part.slice.bytes));
            part.slice.release();
          }
        }
        reader.leave();
        return Buffer.concat(parts);
      };
      const first = readSlowly(flight.join(), 0);
      const run = flight.run(chunksOf(answer, 37_000), fd);
      assert.equal(await flight.shared, true);
      const others = Array.from({ length: 12 }, (_, n) => readSlowly(flight.join(), n * 3));
      const last = flight.join();
      await run;
      for (const read of [first, ...others]) assert.ok((await read).equals(answer));
      // Whoever begins when all is written reads the file; only its end is in no whole slice.
      kinds.clear();
      assert.ok((await readSlowly(last, 0)).equals(answer));
      assert.deepEqual([...kinds].toSorted(), ["live", "stored"]);
      flight.seal();
      await flight.landed;
      assert.equal(slices.bytes, 0, "nothing of it stays in memory");
    });
  });

  it("keeps the file open for a reader that joins after all others left, until it is sealed and left", async () => {
    await withFile(async (fd) => {
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      let landed = false;
      void flight.landed.then(() => (landed = true));
      const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
      const reader = flight.join();
      const run = flight.run(chunksOf(answerOf(50_000), 1500), fd);
      await drain(reader);
      await run;
      reader.leave();
      await turn();
      assert.equal(landed, false, "the answer is being stored: it can still be found");
      assert.equal(flight.joinable, true);
      const late = flight.join();
      flight.seal();
      await turn();
      assert.equal(landed, false, "somebody reads");
      assert.equal(flight.joinable, false);
      late.leave();
      await turn();
      assert.equal(landed, true);
    });
  });

  it("a cut answer ends at the border of a packet, and tells where an error belongs", async () => {
    await withFile(async (fd) => {
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      const reader = flight.join();
      const run = flight.run(chunksOf(answerOf(200_000), 1500, 90_000), fd);
      await assert.rejects(drain(reader), (error) => error instanceof FlightCut && error.inPackfile);
      const outcome = await run;
      assert.equal(outcome.storable, false);
      assert.equal(flight.joinable, false);
    });
  });

  it("an error before the first pack byte is not shared", async () => {
    await withFile(async (fd) => {
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      const reader = flight.join();
      const run = flight.run(chunksOf(encodeErrorLine("not our ref"), 3), fd);
      assert.equal(await flight.shared, false);
      assert.equal(flight.joinable, false);
      assert.ok((await drain(reader)).equals(encodeErrorLine("not our ref")));
      await run;
    });
  });

  it("a disk that fails in the middle is not noticed by the readers that are there", async () => {
    await withFile(async (fd) => {
      const answer = answerOf(300_000);
      const flight = new Flight(new AnswerCheck("sha1"), new Slices());
      const readers = [drain(flight.join()), drain(flight.join())];
      // A descriptor that can be read and not written stands for a full disk.
      const readOnly = await open(`/proc/self/fd/${fd}`, "r").catch(() => undefined);
      const outcome = await flight.run(chunksOf(answer, 5000), readOnly?.fd ?? -1);
      for (const read of readers) assert.ok((await read).equals(answer));
      assert.equal(outcome.storable, false);
      assert.notEqual(outcome.diskError, undefined);
      assert.equal(flight.joinable, false);
      await readOnly?.close();
    });
  });

  it("without a file the slowest present reader sets the pace, and memory stays bounded", async () => {
    const answer = answerOf(20_000_000);
    const flight = new Flight(new AnswerCheck("sha1"), new Slices());
    let given = 0;
    async function* counted(): AsyncGenerator<Buffer> {
      for await (const chunk of chunksOf(answer, 1_000_000)) {
        given += chunk.length;
        yield chunk;
      }
    }
    const reader = flight.join();
    const run = flight.run(counted(), undefined);
    for (let n = 0; n < 100; n++) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(given < 11_000_000, `${given} bytes taken`);
    assert.ok((await drain(reader)).equals(answer));
    await run;
  });

  it("is cancelled when the last reader leaves, not before", () => {
    const flight = new Flight(new AnswerCheck("sha1"), new Slices());
    const [one, two] = [flight.join(), flight.join()];
    one.leave();
    one.leave();
    assert.equal(flight.signal.aborted, false);
    two.leave();
    assert.equal(flight.signal.aborted, true);
  });
});
