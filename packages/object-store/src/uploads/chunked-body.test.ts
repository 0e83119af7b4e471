import assert from "node:assert/strict";
import { hash, randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { CHUNKED_PAYLOAD, CHUNK_BYTES, ChunkedBody } from "./chunked-body.ts";
import { RequestSigner } from "../request-signer.ts";

/** The example of the documentation of Amazon S3, "Signature calculations: transferring payload in multiple chunks". */
const EXAMPLE = {
  secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  keyId: "AKIAIOSFODNN7EXAMPLE",
  chunkBytes: 65_536,
  signatures: [
    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
  ],
  seed: "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
};

describe("ChunkedBody", () => {
  const seedOf = () => {
    const credentials = {
      accessKeyId: EXAMPLE.keyId,
      secretAccessKey: new Secret(EXAMPLE.secret),
      sessionToken: undefined,
    };
    const headers = {
      authorization: `AWS4-HMAC-SHA256 Credential=x, SignedHeaders=y, Signature=${EXAMPLE.seed}`,
      "x-amz-date": "20130524T000000Z",
    };
    return new RequestSigner("us-east-1").chunkSeed(headers, credentials);
  };

  it("signs the example of Amazon", async () => {
    const body = new ChunkedBody(66_560, EXAMPLE.chunkBytes);
    const read = async (target: Buffer): Promise<void> => void target.fill("a");
    await body.fill(66_560, read, () => undefined);
    assert.equal(body.length, 66_560);
    // Signed twice: a request that is repeated has the same bytes.
    for (let at = 0; at < 2; at++) {
      const text = body.sign(seedOf()).toString("latin1");
      assert.deepEqual(
        [...text.matchAll(/([0-9a-f]+);chunk-signature=([0-9a-f]{64})\r\n/g)].map((found) => found.slice(1)),
        [
          ["10000", EXAMPLE.signatures[0]],
          ["400", EXAMPLE.signatures[1]],
          ["0", EXAMPLE.signatures[2]],
        ],
      );
      assert.equal(text.length, 66_824, "the Content-Length of the example");
      assert.ok(text.endsWith("\r\n\r\n"));
    }
  });

  it("gives content and hashes for any length, in memory that is used again", async () => {
    const body = new ChunkedBody(3 * CHUNK_BYTES);
    for (const length of [3 * CHUNK_BYTES, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES - 7]) {
      const content = randomBytes(length);
      const hashes: Buffer[] = [];
      await body.fill(
        length,
        async (target, position) => void content.copy(target, 0, position),
        (position, sha256) => void (hashes[position / CHUNK_BYTES] = sha256),
      );
      const sent = body.sign(seedOf());
      const parts: Buffer[] = [];
      for (let at = 0; at < sent.length;) {
        const line = sent.subarray(at, sent.indexOf("\r\n", at)).toString("latin1");
        const size = Number.parseInt(line, 16);
        const first = at + line.length + 2;
        parts.push(sent.subarray(first, first + size));
        at = first + size + 2;
      }
      assert.ok(Buffer.concat(parts).equals(content), String(length));
      const expected = parts.slice(0, -1).map((part) => hash("sha256", part));
      assert.deepEqual(
        hashes.map((each) => each.toString("hex")),
        expected,
      );
      assert.match(CHUNKED_PAYLOAD, /^STREAMING-/);
    }
  });
});
