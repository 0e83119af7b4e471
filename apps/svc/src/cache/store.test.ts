import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Clock } from "@devplat/base";
import {
  FLUSH_PKT,
  SIDE_BAND,
  encodeFetchResponse,
  encodeLsRefsResponse,
  encodeSideBand,
} from "@devplat/git-protocol";
import type { Ref } from "@devplat/git-store";
import { FillJournal } from "./fill-journal.ts";
import { packBytes } from "./coalescing/pack-stream.ts";
import { mergeRefs } from "./store-refs.ts";
import { Tips } from "../access/ref-snapshots.ts";

const oid = (digit: string): string => digit.repeat(40);
const ref = (name: string, digit: string): Ref => ({ name, oid: oid(digit) });
const map = (...refs: Ref[]): Map<string, Ref> => new Map(refs.map((one) => [one.name, one]));

describe("mergeRefs", () => {
  it("keeps what was there, takes what was shown over it, and names wants that have no name", () => {
    const merged = mergeRefs(
      map(ref("refs/heads/main", "a"), ref("refs/heads/old", "b")),
      [ref("refs/heads/main", "c"), ref("HEAD", "c")],
      [oid("c"), oid("d")],
    );
    assert.deepEqual(
      merged,
      map(ref("refs/heads/main", "c"), ref("refs/heads/old", "b"), ref(`refs/wanted/${oid("d")}`, "d")),
    );
  });

  it("a name that became a folder, or was one, loses its old meaning", () => {
    const before = map(ref("refs/heads/a", "a"), ref("refs/heads/b/c", "b"));
    const merged = mergeRefs(before, [ref("refs/heads/a/x", "c"), ref("refs/heads/b", "d")], []);
    assert.deepEqual([...merged.keys()].toSorted(), ["refs/heads/a/x", "refs/heads/b"]);
  });

  it("passes over names that git does not allow", () => {
    assert.equal(
      mergeRefs(new Map(), [ref("refs/heads/../x", "a"), ref("refs/heads/x.lock", "a")], []).size,
      0,
    );
  });
});

describe("FillJournal", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "journal-"));
    await mkdir(join(folder, "objects", "pack"), { recursive: true });
    await mkdir(join(folder, "objects", "info"));
  });
  afterEach(() => rm(folder, { recursive: true }));
  const name = (digit: string): string => `pack-${oid(digit)}`;
  const put = async (digit: string): Promise<void> => {
    for (const kind of ["pack", "rev", "idx", "reach"]) {
      await writeFile(join(folder, "objects", "pack", `${name(digit)}.${kind}`), "");
    }
  };
  const packs = async (): Promise<string[]> =>
    (await readdir(join(folder, "objects", "pack"))).filter((file) => file.endsWith(".idx"));

  it("undo takes out the packs that came since begin, with all that stands beside them", async () => {
    const journal = new FillJournal(folder);
    await put("a");
    await journal.begin([name("a")]);
    await put("b");
    await writeFile(join(folder, "objects", "info", "commit-graph"), "");
    assert.equal(await new FillJournal(folder).isOpen(), true);
    await new FillJournal(folder).undo();
    assert.deepEqual(await packs(), [`${name("a")}.idx`]);
    assert.equal((await readdir(join(folder, "objects", "pack"))).length, 4);
    assert.deepEqual(await readdir(join(folder, "objects", "info")), []);
    assert.equal(await journal.isOpen(), false);
  });

  it("undo after end, or without begin, takes out nothing", async () => {
    const journal = new FillJournal(folder);
    await put("a");
    await journal.undo();
    await journal.begin([]);
    await journal.end();
    await journal.undo();
    assert.deepEqual(await packs(), [`${name("a")}.idx`]);
  });
});

describe("packBytes", () => {
  const answer = encodeFetchResponse([
    { name: "shallow-info", lines: [`shallow ${oid("a")}`] },
    {
      name: "packfile",
      packets: Buffer.concat([
        encodeSideBand(SIDE_BAND.progress, Buffer.from("Counting")),
        encodeSideBand(SIDE_BAND.pack, Buffer.from("PACK")),
        encodeSideBand(SIDE_BAND.pack, Buffer.from("rest")),
      ]),
    },
  ]);
  const collected = async (chunks: readonly Buffer[]): Promise<string> => {
    const parts: Buffer[] = [];
    for await (const part of packBytes(stream(chunks))) parts.push(part);
    return Buffer.concat(parts).toString();
  };
  async function* stream(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
    yield* chunks;
  }

  it("are those of side-band 1, wherever the answer is cut into chunks", async () => {
    for (let at = 0; at <= answer.length; at++) {
      assert.equal(await collected([answer.subarray(0, at), answer.subarray(at)]), "PACKrest");
    }
  });

  it("throw when the answer ends early", async () => {
    await assert.rejects(collected([answer.subarray(0, answer.length - FLUSH_PKT.length)]), /ends before/);
  });
});

describe("Tips.recent", () => {
  it("holds refs, HEAD and ids of recent yes answers, and is the same object until something changes", () => {
    let ms = 0;
    const clock: Clock = { now: () => ms, monotonic: () => ms, sleep: () => Promise.resolve() };
    const tips = new Tips(600, clock);
    const yes = (...lines: [string, string][]): Buffer =>
      encodeLsRefsResponse(
        lines.map(([id, name]) => ({
          oid: oid(id),
          name,
          symrefTarget: undefined,
          peeled: undefined,
          unknown: [],
        })),
      );
    tips.note(["HEAD"], yes(["a", "HEAD"]));
    ms = 300_000;
    tips.note(["refs/heads/"], yes(["a", "refs/heads/main"], ["b", "refs/heads/dev"]));
    const first = tips.recent();
    assert.deepEqual([...first.oids], [oid("a"), oid("b")]);
    assert.equal(first.head, oid("a"));
    assert.deepEqual([...first.refs.keys()], ["refs/heads/main", "refs/heads/dev"]);
    assert.equal(tips.recent(), first);
    ms = 600_001;
    assert.equal(tips.recent().head, undefined);
    assert.equal(tips.recent().refs.size, 2);
    ms = 900_001;
    assert.equal(tips.recent().oids.size, 0);
  });
});
