import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FLUSH_PKT, SIDE_BAND, encodeFetchResponse, encodeSideBand } from "@devplat/git-protocol";
import { packBytes } from "./pack-stream.ts";

const oid = (digit: string): string => digit.repeat(40);

describe("packBytes", () => {
  const response = encodeFetchResponse([
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
    for await (const part of packBytes(stream(chunks))) parts.push(Buffer.from(part));
    return Buffer.concat(parts).toString();
  };
  async function* stream(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
    yield* chunks;
  }

  it("are those of side-band 1, wherever the response is cut into chunks", async () => {
    for (let at = 0; at <= response.length; at++) {
      assert.equal(await collected([response.subarray(0, at), response.subarray(at)]), "PACKrest");
    }
  });

  it("take the memory of one chunk for all chunks", async () => {
    const packets = Buffer.concat(
      Array.from({ length: 40 }, (_, at) => encodeSideBand(SIDE_BAND.pack, Buffer.alloc(100, at))),
    );
    const long = encodeFetchResponse([{ name: "packfile", packets }]);
    const chunks: Buffer[] = [];
    for (let at = 0; at < long.length; at += 1000) chunks.push(long.subarray(at, at + 1000));
    const memories = new Set<ArrayBufferLike>();
    let bytes = 0;
    for await (const part of packBytes(stream(chunks))) {
      memories.add(part.buffer);
      bytes += part.length;
    }
    assert.equal(bytes, 4000);
    assert.deepEqual(
      [...memories].map(({ byteLength }) => byteLength),
      [1000],
    );
  });

  it("throw when the response ends early", async () => {
    await assert.rejects(
      collected([response.subarray(0, response.length - FLUSH_PKT.length)]),
      /ends before/,
    );
  });
});
