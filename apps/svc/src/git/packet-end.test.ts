import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { FLUSH_PKT, encodePktLine, encodeSideBand, SIDE_BAND } from "@devplat/git-protocol";
import { bytesToPacketEnd } from "./packet-end.ts";

describe("bytesToPacketEnd", () => {
  const folder = mkdtempSync(join(tmpdir(), "packet-end-"));
  after(() => rmSync(folder, { recursive: true }));
  const parts = [
    encodePktLine("packfile\n"),
    ...[1, 5000, 65515].map((length) => encodeSideBand(SIDE_BAND.pack, Buffer.alloc(length, 7))),
    FLUSH_PKT,
  ];
  const bytes = Buffer.concat(parts);
  const path = join(folder, "packets");

  it("counts to the end of the packet that an offset is in", async () => {
    writeFileSync(path, bytes);
    const descriptor = openSync(path, "r");
    let start = 0;
    for (const { length } of parts) {
      for (const sent of new Set([start, start + 1, start + 3, start + length - 1])) {
        const expected = sent === start ? 0 : start + length - sent;
        assert.equal(await bytesToPacketEnd(descriptor, 0, sent), expected, `${sent}`);
        assert.equal(await bytesToPacketEnd(descriptor, start, sent), expected, `${sent} from ${start}`);
      }
      start += length;
    }
    assert.equal(await bytesToPacketEnd(descriptor, 0, bytes.length), 0);
    closeSync(descriptor);
  });

  it("gives nothing where a length is damaged, or the file ends", async () => {
    for (const damaged of ["zzzz", "00-1", "FFFF", "    "]) {
      writeFileSync(path, Buffer.concat([parts[0]!, Buffer.from(damaged), bytes]));
      const descriptor = openSync(path, "r");
      assert.equal(await bytesToPacketEnd(descriptor, 0, 200), undefined, damaged);
      closeSync(descriptor);
    }
    writeFileSync(path, bytes);
    const descriptor = openSync(path, "r");
    assert.equal(await bytesToPacketEnd(descriptor, 0, bytes.length + 10), undefined);
    closeSync(descriptor);
  });
});
