import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { inflateSync } from "node:zlib";
import { gitEnvironment } from "@devplat/testkit";

/** An object as stock git printed it. */
export interface ModelObject {
  readonly type: string;
  readonly content: Buffer;
  /** Ids of the objects that it refers to: parents apart from the rest. */
  readonly parents: readonly string[];
  readonly others: readonly string[];
}

/** All objects of a small repository in plain maps and sets: the slow and obvious way to know what reaches what. */
export class RepositoryModel {
  readonly objects = new Map<string, ModelObject>();

  constructor(path: string, format: "sha1" | "sha256") {
    const width = format === "sha1" ? 20 : 32;
    const { stdout } = spawnSync("git", ["-C", path, "cat-file", "--batch-all-objects", "--batch"], {
      env: gitEnvironment(),
      maxBuffer: 2 ** 28,
    });
    for (let at = 0; at < stdout.length;) {
      const lineEnd = stdout.indexOf(10, at);
      const [oid, type, size] = stdout.toString("latin1", at, lineEnd).split(" ") as [string, string, string];
      const content = stdout.subarray(lineEnd + 1, lineEnd + 1 + Number(size));
      at = lineEnd + 1 + Number(size) + 1;
      this.objects.set(oid, { type, content, ...references(type, content, width) });
    }
  }

  /** All commits. */
  get commits(): Set<string> {
    return new Set(this.ofType("commit"));
  }

  /** Object to which a tag peels. */
  peel(oid: string): string {
    const object = this.objects.get(oid)!;
    return object.type === "tag" ? this.peel(object.others[0]!) : oid;
  }

  ofType(type: string): string[] {
    return [...this.objects].filter(([, object]) => object.type === type).map(([oid]) => oid);
  }

  /** Everything that the starts reach, without the parents of the commits in `cut`. */
  closure(starts: Iterable<string>, cut: ReadonlySet<string> = new Set()): Set<string> {
    const seen = new Set<string>();
    const stack = [...starts];
    for (let oid = stack.pop(); oid !== undefined; oid = stack.pop()) {
      if (seen.has(oid)) continue;
      const object = this.objects.get(oid);
      if (object === undefined) throw new Error(`the model lacks ${oid}`);
      seen.add(oid);
      stack.push(...object.others, ...(cut.has(oid) ? [] : object.parents));
    }
    return seen;
  }
}

function references(
  type: string,
  content: Buffer,
  width: number,
): { parents: readonly string[]; others: readonly string[] } {
  if (type === "tree") {
    const others: string[] = [];
    for (let at = 0; at < content.length;) {
      const space = content.indexOf(32, at);
      const zero = content.indexOf(0, at);
      const isLink = content.toString("latin1", at, space) === "160000";
      if (!isLink) others.push(content.toString("hex", zero + 1, zero + 1 + width));
      at = zero + 1 + width;
    }
    return { parents: [], others };
  }
  const header = content.toString("latin1").split("\n\n")[0]!.split("\n");
  const values = (key: string): string[] =>
    header.filter((line) => line.startsWith(`${key} `)).map((line) => line.slice(key.length + 1));
  if (type === "commit") return { parents: values("parent"), others: values("tree") };
  if (type === "tag") return { parents: [], others: values("object") };
  return { parents: [], others: [] };
}

/** Objects of a pack, found by an independent reader. */
export interface UnpackedPack {
  readonly oids: Set<string>;
  /** Bases of deltas that are not in the pack. */
  readonly foreignBases: Set<string>;
  readonly ofsDeltas: number;
}

/** Reads a whole small pack; bases that it lacks come from `client`. Throws when anything is wrong with it. */
export function unpack(
  pack: Buffer,
  format: "sha1" | "sha256",
  client: (oid: string) => ModelObject | undefined,
): UnpackedPack {
  const width = format === "sha1" ? 20 : 32;
  const body = pack.subarray(0, pack.length - width);
  if (!createHash(format).update(body).digest().equals(pack.subarray(body.length)))
    throw new Error("wrong trailer");
  if (body.toString("latin1", 0, 4) !== "PACK") throw new Error("no pack");
  type Entry = { type: number; data: Buffer; base?: number | string };
  const entries = new Map<number, Entry>();
  let at = 12;
  for (let left = body.readUInt32BE(8); left > 0; left--) {
    const start = at;
    let byte = body[at++]!;
    const type = (byte >> 4) & 7;
    while (byte & 0x80) byte = body[at++]!;
    let base: number | string | undefined;
    if (type === 6) {
      byte = body[at++]!;
      let distance = byte & 0x7f;
      while (byte & 0x80) {
        byte = body[at++]!;
        distance = (distance + 1) * 128 + (byte & 0x7f);
      }
      base = start - distance;
    } else if (type === 7) {
      base = body.toString("hex", at, at + width);
      at += width;
    }
    const { buffer, engine } = inflateSync(body.subarray(at), { info: true }) as unknown as {
      buffer: Buffer;
      engine: { bytesWritten: number };
    };
    at += engine.bytesWritten;
    entries.set(start, base === undefined ? { type, data: buffer } : { type, data: buffer, base });
  }
  if (at !== body.length) throw new Error("bytes after the last entry");
  const names = ["", "commit", "tree", "blob", "tag"];
  const byOid = new Map<string, { type: string; content: Buffer }>();
  const byOffset = new Map<number, { type: string; content: Buffer }>();
  const oids = new Set<string>();
  const foreignBases = new Set<string>();
  const waiting = new Map(entries);
  // As long as there is progress: a base may stand anywhere.
  for (let before = -1; waiting.size > 0 && before !== waiting.size;) {
    before = waiting.size;
    for (const [offset, { type, data, base }] of waiting) {
      let object: { type: string; content: Buffer };
      if (base === undefined) object = { type: names[type]!, content: data };
      else {
        if (typeof base === "number" && !entries.has(base)) throw new Error("an offset that is no entry's");
        const source = typeof base === "number" ? byOffset.get(base) : byOid.get(base);
        if (source === undefined) continue;
        object = { type: source.type, content: applyDelta(source.content, data) };
      }
      waiting.delete(offset);
      byOffset.set(offset, object);
      const oid = createHash(format)
        .update(`${object.type} ${object.content.length}\0`)
        .update(object.content)
        .digest("hex");
      if (oids.has(oid)) throw new Error(`${oid} stands twice in the pack`);
      oids.add(oid);
      byOid.set(oid, object);
    }
    if (before === waiting.size) {
      for (const { base } of waiting.values()) {
        if (typeof base !== "string" || byOid.has(base)) continue;
        const object = client(base);
        // It may be in the pack as a delta that still waits.
        if (object === undefined) continue;
        foreignBases.add(base);
        byOid.set(base, object);
        before = -1;
      }
    }
  }
  if (waiting.size > 0) throw new Error("deltas whose base is neither in the pack nor at the client");
  // One that was taken from the client too early: it came as a delta that waited.
  for (const oid of oids) foreignBases.delete(oid);
  return { oids, foreignBases, ofsDeltas: [...entries.values()].filter((entry) => entry.type === 6).length };
}

function applyDelta(base: Buffer, delta: Buffer): Buffer {
  let at = 0;
  const size = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = delta[at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  if (size() !== base.length) throw new Error("a delta for another base");
  const resultSize = size();
  const parts: Buffer[] = [];
  while (at < delta.length) {
    const op = delta[at++]!;
    if (op < 0x80) {
      parts.push(delta.subarray(at, at + op));
      at += op;
      continue;
    }
    let [from, length] = [0, 0];
    for (let i = 0; i < 4; i++) if (op & (1 << i)) from += delta[at++]! * 256 ** i;
    for (let i = 0; i < 3; i++) if (op & (0x10 << i)) length += delta[at++]! * 256 ** i;
    parts.push(base.subarray(from, from + (length || 0x10000)));
  }
  const result = Buffer.concat(parts);
  if (result.length !== resultSize) throw new Error("a delta of another result size");
  return result;
}
