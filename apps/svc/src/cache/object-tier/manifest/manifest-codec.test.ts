import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { loopSeconds, testSeed } from "@devplat/testkit";
import { repositoryId } from "../../../access/repository-id.ts";
import { decodeManifest, encodeManifest } from "./manifest-codec.ts";
import { ManifestKeys } from "./manifest-keys.ts";
import { HOST_URL, KEY, OTHER_KEY, REPOSITORY } from "./manifest.test-kit.ts";
import { SLICE_BYTES, type Manifest } from "./manifest.ts";
import { openManifest, sealManifest } from "./sealed-manifest.ts";

const SUM = "a".repeat(64);
const OID = "b".repeat(40);
const object = { name: "responses/x-w-1", length: 3, sha256: SUM, slicesSha256: undefined };
const MANIFEST: Manifest = {
  generation: 7,
  epoch: 2,
  fence: 3,
  objectFormat: "sha1",
  packs: [
    {
      pack: `pack-${OID}`,
      files: {
        pack: { name: "packs/w-1-c.pack", length: SLICE_BYTES + 1, sha256: SUM, slicesSha256: SUM },
        idx: { ...object, name: "packs/w-1-c.idx" },
      },
    },
  ],
  responses: [{ key: SUM, object, usedAt: 5 }],
  refs: [
    { name: "HEAD", oid: OID },
    { name: "refs/tags/ä", oid: OID, peeled: OID },
  ],
  retainedRefs: [{ oid: OID, since: 4 }],
  tombstones: [{ name: "packs/old.pack", generation: 6, at: 9 }],
  writtenAt: 11,
  writtenBy: "w-1",
};
const subject = { hostUrl: HOST_URL, id: REPOSITORY };
const keys = new ManifestKeys(KEY);
const wire = (): Record<string, unknown> => JSON.parse(encodeManifest(MANIFEST)) as Record<string, unknown>;

describe("decodeManifest", () => {
  it("reads what encodeManifest wrote", () => {
    assert.deepEqual(decodeManifest(encodeManifest(MANIFEST)), MANIFEST);
  });

  const first = (list: string, change: object) => ({
    [list]: [{ ...(wire()[list] as object[])[0], ...change }],
  });
  const inObject = (change: object) =>
    first("responses", {
      object: { ...(wire()["responses"] as { object: object }[])[0]?.object, ...change },
    });
  const file = (change: object) =>
    first("packs", { files: { ...(wire()["packs"] as { files: object }[])[0]?.files, ...change } });
  const malformed: readonly (readonly [name: string, change: object, message: RegExp])[] = [
    ["an unknown member", { more: 1 }, /^the manifest is not free of unknown members/],
    ["a missing member", { refs: undefined }, /^the manifest.refs is not there/],
    ["generation 0", { generation: 0 }, /^generation/],
    ["a generation in a string", { generation: "7" }, /^generation/],
    ["a negative epoch", { epoch: -1 }, /^epoch/],
    ["a fraction", { fence: 1.5 }, /^fence/],
    ["a number that is not exact", { fence: 2 ** 53 }, /^fence/],
    ["another object format", { object_format: "md5" }, /^object_format/],
    ["ids of another format", { object_format: "sha256" }, /^refs\[0\]\[1\]/],
    ["packs without a format", { object_format: null, refs: [], retained_refs: [] }, /^object_format/],
    ["refs without a format", { object_format: null, packs: [], retained_refs: [] }, /^refs\[0\]\[1\]/],
    ["packs that are a mapping", { packs: {} }, /^packs/],
    ["a pack without index", first("packs", { files: { pack: object } }), /^packs\[0\].files.idx/],
    ["an unknown file of a pack", file({ keep: object }), /^packs\[0\].files is not free/],
    ["a pack with a path as name", first("packs", { pack: "../x" }), /^packs\[0\].pack/],
    [
      "a pack twice",
      { packs: [...(wire()["packs"] as object[]), ...(wire()["packs"] as object[])] },
      /^packs/,
    ],
    [
      "a response twice",
      { responses: Array.from({ length: 2 }, () => (wire()["responses"] as object[])[0]) },
      /^responses/,
    ],
    ["a key in upper case", first("responses", { key: "A".repeat(64) }), /^responses\[0\].key/],
    ["an object outside the folders", inObject({ name: "manifest.json" }), /object.name/],
    ["an object above the folder", inObject({ name: "packs/../../x" }), /object.name/],
    ["an object in a folder below", inObject({ name: "packs/a/b" }), /object.name/],
    ["a list of slices as object", inObject({ name: "packs/a.slices" }), /object.name/],
    ["a short checksum", inObject({ sha256: "a".repeat(63) }), /object.sha256/],
    ["a negative length", inObject({ length: -1 }), /object.length/],
    ["a length above S3's limit", inObject({ length: 6 * 2 ** 40 }), /object.length/],
    ["one slice with a list", inObject({ slices: SUM }), /object.slices/],
    ["two slices without a list", inObject({ length: SLICE_BYTES + 1 }), /object.slices/],
    ["a ref with a bad name", { refs: [["refs/../x", OID]] }, /^refs\[0\]\[0\]/],
    ["a ref with a name of a megabyte", { refs: [[`refs/${"x".repeat(2 ** 20)}`, OID]] }, /^refs\[0\]\[0\]/],
    ["a ref without id", { refs: [["HEAD"]] }, /^refs\[0\]/],
    ["a ref with four parts", { refs: [["HEAD", OID, OID, OID]] }, /^refs\[0\]/],
    [
      "a ref twice",
      {
        refs: [
          ["HEAD", OID],
          ["HEAD", OID],
        ],
      },
      /^refs/,
    ],
    ["a retained ref without time", { retained_refs: [[OID]] }, /^retained_refs\[0\]/],
    ["a tombstone with a path", first("tombstones", { name: "/etc/x" }), /^tombstones\[0\].name/],
    ["a writer with a line break", { written_by: "a\nb" }, /^written_by/],
    ["an empty writer", { written_by: "" }, /^written_by/],
    ["a time in a string", { written_at: "now" }, /^written_at/],
  ];
  for (const [name, change, message] of malformed) {
    it(`refuses ${name}`, () => {
      const text = JSON.stringify({ ...wire(), ...change });
      assert.throws(() => decodeManifest(text), { name: "ManifestFault", message });
    });
  }

  it("refuses JSON of another kind, and texts that are not JSON, without quoting them", () => {
    for (const text of ["", "null", "[]", "7", '"planted"', "{planted", "\u0000"]) {
      assert.throws(
        () => decodeManifest(text),
        (error: Error) => error.name === "ManifestFault" && !error.message.includes("planted"),
      );
    }
  });
});

describe("openManifest", () => {
  const sealed = sealManifest(MANIFEST, subject, keys);

  it("reads what sealManifest wrote, which is JSON", () => {
    assert.deepEqual(openManifest(sealed.bytes, subject, keys), {
      kind: "manifest",
      manifest: MANIFEST,
      hmac: sealed.hmac,
    });
    assert.equal((JSON.parse(sealed.bytes.toString()) as { format: number }).format, 1);
  });

  it("refuses the manifest of another repository, owner or code host as forged", () => {
    const others = [
      { ...subject, id: repositoryId("ada", "engine2") },
      { ...subject, id: repositoryId("ad", "aengine") },
      { ...subject, hostUrl: "https://code.example2" },
    ];
    for (const other of others) assert.equal(openManifest(sealed.bytes, other, keys).kind, "forged");
  });

  it("accepts the previous key, and names a key that is not here", () => {
    const rotated = new ManifestKeys(OTHER_KEY, [KEY]);
    assert.equal(openManifest(sealed.bytes, subject, rotated).kind, "manifest");
    assert.notEqual(rotated.currentId, keys.currentId);
    assert.deepEqual(openManifest(sealed.bytes, subject, new ManifestKeys(OTHER_KEY)), {
      kind: "other_key",
      keyId: keys.currentId,
    });
  });

  it("believes a newer format only with the right HMAC", () => {
    const newer = sealed.bytes.toString().replace('"format":1', '"format":2');
    assert.equal(openManifest(Buffer.from(newer), subject, keys).kind, "forged");
  });

  it("never accepts a changed byte, and never throws", () => {
    fc.assert(
      fc.property(fc.nat(sealed.bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, xor) => {
        const changed = Buffer.from(sealed.bytes);
        changed[at] = (changed[at] ?? 0) ^ xor;
        assert.notEqual(openManifest(changed, subject, keys).kind, "manifest");
      }),
      { seed: testSeed(), interruptAfterTimeLimit: loopSeconds(0.003) * 1000, numRuns: 100_000 },
    );
    for (const bytes of [
      "",
      "}",
      '{"format":1}',
      sealed.bytes.toString().slice(0, 150),
      `${sealed.bytes.toString()} `,
    ])
      assert.equal(openManifest(Buffer.from(bytes), subject, keys).kind, "malformed", bytes.slice(0, 20));
  });

  it("keeps any content that a manifest can have", () => {
    const hex = (length: number) =>
      fc
        .uint8Array({ minLength: length, maxLength: length })
        .map((bytes) => Buffer.from(bytes).toString("hex"));
    const number = fc.maxSafeNat();
    const named = (folder: string) => hex(8).map((name) => `${folder}/${name}`);
    const anyObject = (folder: string) =>
      fc
        .record({ name: named(folder), length: fc.nat(3 * SLICE_BYTES), sha256: hex(32), list: hex(32) })
        .map(({ list, ...rest }) => ({
          ...rest,
          slicesSha256: rest.length > SLICE_BYTES ? list : undefined,
        }));
    const anyManifest = fc.record({
      generation: number.map((value) => Math.max(1, value)),
      epoch: number,
      fence: number,
      objectFormat: fc.constant("sha256" as const),
      packs: fc.uniqueArray(
        fc.record({
          pack: hex(32).map((sum) => `pack-${sum}`),
          files: fc.record(
            {
              pack: anyObject("packs"),
              idx: anyObject("packs"),
              rev: anyObject("packs"),
              bitmap: anyObject("packs"),
              graph: anyObject("packs"),
            },
            { requiredKeys: ["pack", "idx"] },
          ),
        }),
        { selector: ({ pack }) => pack, maxLength: 4 },
      ),
      responses: fc.uniqueArray(fc.record({ key: hex(32), object: anyObject("responses"), usedAt: number }), {
        selector: ({ key }) => key,
        maxLength: 4,
      }),
      refs: fc.uniqueArray(fc.record({ name: hex(4).map((name) => `refs/heads/${name}`), oid: hex(32) }), {
        selector: ({ name }) => name,
        maxLength: 8,
      }),
      retainedRefs: fc.array(fc.record({ oid: hex(32), since: number }), { maxLength: 4 }),
      tombstones: fc.array(fc.record({ name: named("packs"), generation: number, at: number }), {
        maxLength: 4,
      }),
      writtenAt: number,
      writtenBy: hex(4),
    });
    fc.assert(
      fc.property(anyManifest, (manifest) => {
        const { bytes } = sealManifest(manifest, subject, keys);
        const opened = openManifest(bytes, subject, keys);
        assert.ok(opened.kind === "manifest");
        // fast-check makes records without a prototype.
        assert.deepEqual(opened.manifest, structuredClone(manifest));
      }),
      { seed: testSeed(), interruptAfterTimeLimit: loopSeconds(0.003) * 1000, numRuns: 10_000 },
    );
  });
});
