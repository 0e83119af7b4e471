import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { takeProxyHeader } from "./proxy-protocol.ts";

describe("PROXY headers of version 2", () => {
  const addresses: [name: string, bytes: string, written: string][] = [
    ["an IPv6 address is written as the system does", "20010db8000000000000000000000001", "2001:db8::1"],
    [
      "an IPv4 address in IPv6's form is known as one",
      "00000000000000000000ffffc0000207",
      "::ffff:192.0.2.7",
    ],
  ];
  for (const [name, source, written] of addresses) {
    it(name, async () => {
      const connection = new PassThrough();
      connection.write(Buffer.from("\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24", "latin1"));
      connection.write(Buffer.concat([Buffer.from(source, "hex"), Buffer.alloc(20), Buffer.from("GET")]));
      const header = await takeProxyHeader(connection as unknown as Socket);
      assert.equal(header?.address, written);
      assert.equal(String(connection.read()), "GET");
    });
  }
});
