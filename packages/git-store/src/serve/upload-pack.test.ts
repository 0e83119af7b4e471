import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  decodeFetchRequest,
  decodePktLine,
  decodeSideBand,
  FetchResponseWalker,
  type FetchRequest,
} from "@devplat/git-protocol";
import { buildRepository, git, temporaryFolder } from "../../test/git.test-kit.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import { ReachabilityIndex } from "../reachability/reachability-index.ts";
import { Repository } from "../repository/repository.ts";
import type { Ref } from "../repository/packed-refs.ts";
import type { PackTotals } from "./pack-writer.ts";
import { uploadPackV2Fetch, whyNotServable } from "./upload-pack.ts";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let repository: Repository;
let index: ReachabilityIndex;
let graph: ObjectGraph;
let refs: Map<string, Ref>;

before(async () => {
  folder = temporaryFolder();
  path = buildRepository(folder.path);
  repository = await Repository.open(path);
  index = ReachabilityIndex.open(repository.objects);
  graph = index.acquire();
  refs = await repository.refs();
});
after(() => {
  graph.release();
  index.close();
  repository.close();
  folder[Symbol.dispose]();
});

const oid = (name: string): string => git(path, ["rev-parse", name]).toString().trim();

function fetch(...args: string[]): FetchRequest {
  return decodeFetchRequest({ command: "fetch", capabilities: [], args }, "sha1");
}

async function collect(
  request: FetchRequest,
  options: {
    reuseChunks?: boolean;
    signal?: AbortSignal;
    onTotals?: (totals: Readonly<PackTotals>) => void;
  } = {},
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  // Copied before the next step: with reuseChunks that overwrites it.
  for await (const chunk of uploadPackV2Fetch(graph, request, { refs, ...options }))
    chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

function packOf(response: Buffer): Buffer {
  const parts: Buffer[] = [];
  new FetchResponseWalker({ pack: (bytes) => parts.push(Buffer.from(bytes)) }).push(response);
  return Buffer.concat(parts);
}

test("a clone of everything in one stored pack is that pack, byte for byte", async () => {
  const wants = [...refs.values()].map((ref) => `want ${ref.oid}`);
  let totals: Readonly<PackTotals> | undefined;
  const response = await collect(fetch(...wants, "ofs-delta", "done"), {
    onTotals: (told) => (totals = told),
  });
  const stored = repository.objects.packs[0]!;
  assert.ok(packOf(response).equals(readFileSync(stored.path)));
  assert.equal(totals?.verbatim, stored.count);
});

test("without ofs-delta the same objects come with their bases named by id", async () => {
  const wants = [...refs.values()].map((ref) => `want ${ref.oid}`);
  const pack = packOf(await collect(fetch(...wants, "done")));
  assert.equal(pack.readUInt32BE(8), repository.objects.packs[0]!.count);
  const trailer = createHash("sha1").update(pack.subarray(0, -20)).digest();
  assert.ok(pack.subarray(-20).equals(trailer));
  using scratch = temporaryFolder();
  git(scratch.path, ["init", "-q", "--bare", "."]);
  git(scratch.path, ["index-pack", "--stdin", "--strict"], pack);
  const verified = git(scratch.path, ["cat-file", "--batch-all-objects", "--batch-check"]).toString();
  assert.equal(verified, git(path, ["cat-file", "--batch-all-objects", "--batch-check"]).toString());
});

test("reuseChunks changes no byte", async () => {
  const request = fetch(`want ${oid("main")}`, "ofs-delta", "done", "no-progress");
  assert.ok((await collect(request, { reuseChunks: true })).equals(await collect(request)));
});

test("progress is told as git tells it, and not at all with no-progress", async () => {
  const texts = (response: Buffer): string => {
    let text = "";
    let inPack = false;
    for (let at = 0; at < response.length;) {
      const decoded = decodePktLine(response, at);
      assert.equal(decoded.state, "complete");
      if (decoded.state !== "complete") break;
      if (decoded.line.kind === "data" && inPack) {
        const { channel, data } = decodeSideBand(decoded.line.payload);
        if (channel === 2) text += data.toString();
      }
      inPack ||= decoded.line.kind === "data" && decoded.line.payload.toString() === "packfile\n";
      at += decoded.size;
    }
    return text;
  };
  const args = [`want ${oid("main~30")}`, "done"];
  const text = texts(await collect(fetch(...args)));
  assert.match(
    text,
    /^Enumerating objects: (\d+), done\.\nCounting objects: 100% \(\1\/\1\), done\.\nTotal \1 /u,
  );
  assert.equal(texts(await collect(fetch(...args, "no-progress"))), "");
});

test("sideband-all puts every line before the pack on side-band 1", async () => {
  const response = await collect(fetch(`want ${oid("main")}`, "deepen 1", "sideband-all", "done"));
  const lines: string[] = [];
  for (let at = 0; lines.at(-1) !== "packfile\n";) {
    const decoded = decodePktLine(response, at);
    assert.ok(decoded.state === "complete");
    if (decoded.line.kind === "data") {
      const { channel, data } = decodeSideBand(decoded.line.payload);
      assert.equal(channel, 1);
      lines.push(data.toString());
    } else lines.push(decoded.line.kind);
    at += decoded.size;
  }
  assert.deepEqual(lines, ["shallow-info\n", `shallow ${oid("main")}\n`, "delim", "packfile\n"]);
});

test("a want that the client has already gives an empty pack", async () => {
  const response = await collect(fetch(`want ${oid("main")}`, `have ${oid("main")}`, "done"));
  assert.equal(packOf(response).readUInt32BE(8), 0);
});

test("without wants the response is empty, as in git", async () => {
  assert.equal((await collect(fetch("done"))).length, 0);
});

test("an aborted signal ends the iterator with its reason", async () => {
  const controller = new AbortController();
  const reason = new Error("the client left");
  const chunks = uploadPackV2Fetch(graph, fetch(`want ${oid("main")}`, "done"), {
    refs,
    signal: controller.signal,
  });
  await chunks.next();
  controller.abort(reason);
  await assert.rejects(async () => {
    for await (const chunk of chunks) assert.ok(chunk.length > 0);
  }, reason);
});

test("whyNotServable names what is missing or not supported", () => {
  const want = `want ${oid("main")}`;
  const none = "5".repeat(40);
  const why = (...args: string[]): string | undefined => whyNotServable(graph, fetch(...args), { refs });
  assert.equal(
    why(want, "want-ref refs/heads/main", "deepen 1", `have ${none}`, `shallow ${none}`),
    undefined,
  );
  assert.equal(why(want, "deepen-not light"), undefined);
  assert.match(why(want, "future-argument") ?? "", /argument/u);
  assert.match(why(`want ${none}`) ?? "", /object/u);
  assert.match(why("want-ref refs/heads/none") ?? "", /ref/u);
  assert.match(why(want, "filter sparse:oid=main:spec") ?? "", /filter/u);
  assert.match(why(want, "deepen 1", "deepen-since 5") ?? "", /depth/u);
  assert.match(why(want, "deepen 0") ?? "", /depth/u);
  assert.match(why(want, "deepen-not none") ?? "", /deepen-not/u);
  assert.match(why(want, `shallow ${oid("main^{tree}")}`) ?? "", /shallow/u);
});

test("uploadPackV2Fetch throws before its first byte when the store is not closed", async () => {
  using scratch = temporaryFolder();
  const partial = await Repository.init(join(scratch.path, "partial.git"));
  const pack = git(path, ["pack-objects", "-q", "--stdout"], `${oid("main")}\n`);
  await partial.receivePack(
    (async function* one() {
      yield pack;
    })(),
    { threads: 0 },
  );
  const partialIndex = ReachabilityIndex.open(partial.objects);
  const chunks = uploadPackV2Fetch(partialIndex.acquire(), fetch(`want ${oid("main")}`, "done"), { refs });
  await assert.rejects(chunks.next(), { code: "missing_object" });
});
