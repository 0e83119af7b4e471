import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { EventStreams, formatEvent, type StreamOptions } from "./event-streams.ts";

describe("formatEvent", () => {
  it("writes each line of the data as its own field", () => {
    assert.equal(
      formatEvent({ event: "updated", data: "a\r\nb\rc\nd" }),
      "event: updated\ndata: a\ndata: b\ndata: c\ndata: d\n\n",
    );
    assert.equal(formatEvent({ data: "" }), "data: \n\n");
  });

  it("writes exactly one event for any name and any data", () => {
    const any = fc.string({ unit: fc.constantFrom("\r", "\n", "a", ":", " ", "data: x", "event: y") });
    fc.assert(
      fc.property(any, any, (event, data) => {
        const lines = formatEvent({ event, data }).split("\n");
        assert.equal(lines.filter((line) => line === "").length, 2);
        assert.ok(
          lines.slice(0, -2).every((line, index) => line.startsWith(index === 0 ? "event: " : "data: ")),
        );
      }),
    );
  });
});

describe("EventStreams", () => {
  const waiting: ((response: ServerResponse) => void)[] = [];
  const server = createServer((_request, response) => waiting.shift()?.(response));
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Response of an open stream, from the reader's side. */
  async function open(streams: EventStreams, options: StreamOptions): Promise<IncomingMessage> {
    waiting.push((response) => streams.open(response, options));
    const outgoing = get({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, agent: false });
    outgoing.on("error", () => undefined);
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    return incoming.setEncoding("utf8");
  }

  async function all(stream: IncomingMessage): Promise<string> {
    let text = "";
    for await (const chunk of stream) text += String(chunk);
    return text;
  }

  it("sends the first events, then only events of its own channel", async () => {
    const streams = new EventStreams();
    const stream = await open(streams, { channel: "a", first: [{ data: "first" }] });
    streams.send("a", [{ event: "x", data: "1" }]);
    streams.send("b", [{ data: "other" }]);
    streams.closeAll();
    assert.equal(await all(stream), ":\n\ndata: first\n\nevent: x\ndata: 1\n\n");
    assert.equal(streams.size, 0);
  });

  it("closes the oldest stream for one over the maximum [agent 34.5]", async () => {
    const streams = new EventStreams({ max: 2 });
    const oldest = await open(streams, { channel: "a" });
    await open(streams, { channel: "a" });
    await open(streams, { channel: "a" });
    assert.equal(await all(oldest), ":\n\n");
    assert.equal(streams.size, 2);
    streams.closeAll();
  });

  it("ends the streams of one owner and no others", async () => {
    const streams = new EventStreams();
    const mine = await open(streams, { channel: "a", owner: "s1" });
    await open(streams, { channel: "a", owner: "s2" });
    streams.closeOwned("s1");
    await all(mine);
    assert.equal(streams.size, 1);
    streams.closeAll();
  });

  it("sends a heartbeat [agent 34.5]", async () => {
    const streams = new EventStreams({ heartbeatMs: 5 });
    const stream = await open(streams, { channel: "a" });
    let text = "";
    for await (const chunk of stream) if ((text += String(chunk)).length >= 9) break;
    assert.equal(text.slice(0, 9), ":\n\n:\n\n:\n\n");
    streams.closeAll();
  });

  it("forgets a reader that went away", async () => {
    const streams = new EventStreams();
    let gone: Promise<unknown> | undefined;
    waiting.push((response) => {
      streams.open(response, { channel: "a" });
      gone = once(response, "close");
    });
    const outgoing = get({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, agent: false });
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    assert.deepEqual([...streams.channels()], ["a"]);
    incoming.destroy();
    await gone;
    assert.equal(streams.channels().size, 0);
  });

  it("closes the stream of a reader that does not read", async () => {
    const streams = new EventStreams();
    const stream = await open(streams, { channel: "a" });
    stream.pause();
    const data = "x".repeat(1024 * 1024);
    for (let count = 0; count < 64 && streams.size > 0; count++) streams.send("a", [{ data }]);
    assert.equal(streams.size, 0);
    stream.destroy();
  });
});
