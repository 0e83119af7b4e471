import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { endpoint, parseSocketTable, TCP_STATE } from "./socket-table.ts";

// Captured from a little-endian machine; column widths as the kernel prints them.
const TCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41231 1 0000000000000000 100 0 0 10 0
   1: 0100007F:D431 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 65534        0 41232 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:D432 0100007F:1F90 06 00000000:00000000 03:00000F00 00000000     0        0 0 3 0000000000000000
`;
const TCP6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 5 1 0 100 0 0 10 0
   1: 0000000000000000FFFF00000100007F:D433 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 6 1 0 20 4 30 10 -1
`;

describe("parseSocketTable", () => {
  it("reads addresses, ports, state, uid and inode", () => {
    assert.deepEqual(parseSocketTable(TCP)[1], {
      local: endpoint("127.0.0.1", 54_321),
      remote: endpoint("127.0.0.1", 8080),
      state: TCP_STATE.established,
      uid: 65_534,
      inode: 41_232,
    });
    assert.equal(parseSocketTable(TCP)[0]?.state, TCP_STATE.listen);
  });

  it("gives only the records with a port, at either end", () => {
    assert.deepEqual(
      parseSocketTable(TCP, 8080).map(({ inode }) => inode),
      [41_231, 41_232],
    );
    assert.equal(parseSocketTable(TCP, 54_321).length, 1);
    assert.equal(parseSocketTable(TCP, 1).length, 0);
  });

  it("leaves out connections in TIME_WAIT, and gives another closed socket as inode 0", () => {
    assert.equal(parseSocketTable(TCP).length, 2);
    const [closing] = parseSocketTable(TCP.replace(/^(.*\n)(.*\n){2}/, "$1").replace(" 06 ", " 05 "));
    assert.equal(closing?.inode, 0);
  });

  it("reads IPv6, and an IPv4 address mapped into it as the same address", () => {
    const [listener, mapped] = parseSocketTable(TCP6);
    assert.equal(listener?.local, endpoint("::1", 8080));
    assert.equal(mapped?.local, endpoint("127.0.0.1", 54_323));
    assert.equal(mapped?.remote, endpoint("::ffff:127.0.0.1", 8080));
  });

  it("leaves out lines that are not records, and never throws", () => {
    assert.deepEqual(parseSocketTable("header\nnonsense\n 1: XYZ:1 2:3 0A a b c d\n\n"), []);
    fc.assert(fc.property(fc.string(), (text) => Array.isArray(parseSocketTable(`h\n${text}`))));
  });
});

describe("endpoint", () => {
  const table: [string, string][] = [
    ["127.0.0.1", "00000000000000000000ffff7f000001:1"],
    ["::ffff:127.0.0.1", "00000000000000000000ffff7f000001:1"],
    ["::1", "00000000000000000000000000000001:1"],
    ["::", "00000000000000000000000000000000:1"],
    ["fe80::1:2%eth0", "fe800000000000000000000000010002:1"],
    ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008:1"],
  ];
  for (const [address, expected] of table) {
    it(`gives ${address} in one form`, () => assert.equal(endpoint(address, 1), expected));
  }

  it("is undefined for text that is not an address", () => {
    for (const text of ["", "localhost", "127.0.0.256", "1.2.3", ":::", undefined]) {
      assert.equal(endpoint(text, 1), undefined);
    }
    assert.equal(endpoint("127.0.0.1", undefined), undefined);
  });

  it("gives every IPv6 address as 32 hex digits", () => {
    fc.assert(fc.property(fc.ipV6(), (address) => /^[0-9a-f]{32}:9$/.test(endpoint(address, 9) ?? "")));
  });
});
