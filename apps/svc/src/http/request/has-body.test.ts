import assert from "node:assert/strict";
import { connect, createServer } from "node:http2";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import { hasBody } from "./has-body.ts";

it("HTTP/2 has a body without a length, and none if the stream ends with its head", async () => {
  const server = createServer((request, response) => {
    const found = hasBody(request as unknown as IncomingMessage);
    request.resume();
    response.end(String(found));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const ask = async (method: string, body?: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const stream = client.request({ ":method": method, ":path": "/" }, { endStream: body === undefined });
      let text = "";
      stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
      stream.on("end", () => resolve(text));
      stream.on("error", reject);
      if (body !== undefined) stream.end(body);
    });
  assert.deepEqual(
    [await ask("GET"), await ask("POST", "x"), await ask("DELETE")],
    ["false", "true", "false"],
  );
  client.close();
  server.close();
});

it("a body is seen in HTTP/1.1 by its length or its chunks", () => {
  const of = (headers: Record<string, string>): boolean => hasBody({ headers } as unknown as IncomingMessage);
  assert.deepEqual(
    [
      of({}),
      of({ "content-length": "0" }),
      of({ "content-length": "1" }),
      of({ "transfer-encoding": "chunked" }),
    ],
    [false, false, true, true],
  );
});
