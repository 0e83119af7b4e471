import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { silentLogger, systemClock, type Logger } from "@devplat/base";
import { HttpClient } from "@devplat/http-client";
import type { ExportResult } from "@opentelemetry/core";
import { ExportHealth } from "./export-health.ts";
import { OtlpExporter } from "./otlp-exporter.ts";

/** Time limit of a batch in these tests, in milliseconds. */
const LIMIT_MS = 1500;
/** A loaded machine takes this much longer, in milliseconds. */
const SLACK_MS = 3000;

/** An exporter to a server that behaves badly on purpose: no real collector does. */
async function exporterTo(listener: RequestListener) {
  const bodies: string[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const server = createServer((request, response) => {
    headers.push(request.headers);
    void text(request).then((body) => bodies.push(body));
    listener(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
  const client = new HttpClient({ idleMs: 1000 });
  const lines: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (fields) => lines.push(String(fields["reason"])) };
  const exporter = new OtlpExporter<string>({
    client,
    serializer: {
      serializeRequest: (batch) => (batch === "unfit" ? undefined : Buffer.from(batch)),
      deserializeResponse: (body) => JSON.parse(Buffer.from(body).toString()) as object,
    },
    settings: {
      url,
      protocol: "http/json",
      headers: { authorization: "key" },
      timeoutMs: LIMIT_MS,
      isCompressed: false,
      tls: undefined,
      problems: [],
    },
    health: new ExportHealth({ signal: "traces", logger: () => logger, clock: systemClock }),
    clock: systemClock,
  });
  return {
    bodies,
    headers,
    lines,
    exporter,
    send: (batch: string) => new Promise<ExportResult>((resolve) => exporter.export(batch, resolve)),
    stop: async () => {
      exporter.end();
      await client.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

const answer =
  (status: number, body = "", headers = {}) =>
  (_: IncomingMessage, response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body);

describe("OtlpExporter", () => {
  const outcomes: [name: string, listener: RequestListener, problem: string | undefined, requests: number][] =
    [
      ["takes 200 without a body", answer(200), undefined, 1],
      ["takes 202 with an empty document", answer(202, "{}"), undefined, 1],
      ["takes 200 with a body that is no document", answer(200, "<html>planted"), undefined, 1],
      [
        "reports a part that was refused",
        answer(200, '{"partialSuccess":{"rejectedSpans":"3","errorMessage":"planted"}}'),
        "the collector refused a part of the data",
        1,
      ],
      ["drops a batch after 400", answer(400, "planted"), "the collector answered 400", 1],
      ["drops a batch after 401", answer(401, "planted"), "the collector answered 401", 1],
      ["drops a batch after 404", answer(404), "the collector answered 404", 1],
      ["drops a batch after 500", answer(500, "planted"), "the collector answered 500", 1],
      ["follows no redirect", answer(307, "", { location: "/other" }), "the collector answered 307", 1],
      ["does not wait an hour", answer(429, "", { "retry-after": "3600" }), "the collector answered 429", 1],
      [
        "does not wait until a date",
        answer(503, "", { "retry-after": "Fri, 31 Dec 9999 23:59:59 GMT" }),
        "the collector answered 503",
        2,
      ],
      ["drops a batch without an answer", () => undefined, "no answer in time", 1],
      [
        "drops a batch whose answer never ends",
        (_, response) => {
          response.writeHead(200);
          const timer = setInterval(() => response.write("x"), 50);
          response.on("close", () => clearInterval(timer));
        },
        "no answer in time",
        1,
      ],
      [
        "does not read a large answer to its end",
        (_, response) => void response.end("x".repeat(10_000_000)),
        "more than 65536 bytes",
        1,
      ],
      ["survives a torn connection", (request) => void request.socket.destroy(), "ECONNRESET", 2],
      [
        "survives an answer that is not HTTP",
        (request) => void request.socket.end("planted\r\n\r\n"),
        "HPE_INVALID_CONSTANT",
        2,
      ],
    ];
  for (const [name, listener, problem, requests] of outcomes) {
    it(name, async () => {
      const { send, headers, lines, stop } = await exporterTo(listener);
      try {
        const begun = performance.now();
        const result = await send("batch");
        assert.ok(performance.now() - begun < LIMIT_MS + SLACK_MS);
        assert.equal(result.error?.message, problem);
        assert.deepEqual(lines, problem === undefined ? [] : [problem]);
        assert.ok(headers.length <= requests + 1 && headers.length >= 1, `${headers.length} requests`);
        assert.doesNotMatch(JSON.stringify([result, lines]), /planted/);
      } finally {
        await stop();
      }
    });
  }

  it("sends a batch again after 503, as it was, with its headers", async () => {
    let count = 0;
    const { send, bodies, headers, lines, stop } = await exporterTo((request, response) => {
      count += 1;
      answer(count === 1 ? 503 : 200)(request, response);
    });
    try {
      assert.equal((await send("batch")).error, undefined);
      assert.deepEqual([bodies, lines], [["batch", "batch"], []]);
      assert.deepEqual(
        headers.map((each) => [each.authorization, each["content-type"]]),
        Array.from({ length: 2 }, () => ["key", "application/json"]),
      );
    } finally {
      await stop();
    }
  });

  it("drops a batch that cannot be encoded, without a request", async () => {
    const { send, headers, stop } = await exporterTo(answer(200));
    assert.equal((await send("unfit")).error?.message, "the batch cannot be encoded");
    assert.equal(headers.length, 0);
    await stop();
  });

  it("ends what runs, and says nothing about that in the log", async () => {
    const { send, exporter, lines, stop } = await exporterTo(() => undefined);
    const sent = send("batch");
    const begun = performance.now();
    exporter.end();
    assert.equal((await sent).error?.message, "the request was ended");
    assert.ok(performance.now() - begun < SLACK_MS);
    assert.deepEqual(lines, []);
    await stop();
  });
});
