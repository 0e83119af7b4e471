import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { describe, it } from "node:test";
import { ambiguity } from "./request-line.ts";

describe("a request that a proxy in front might read otherwise", () => {
  const of = (url: string, ...rawHeaders: string[]): string | undefined => {
    const host = rawHeaders[rawHeaders.findIndex((name) => name.toLowerCase() === "host") + 1];
    return ambiguity({ url, rawHeaders, headers: { host } } as unknown as IncomingMessage);
  };

  it("a second Host or Authorization is refused, in any case of letters", () => {
    assert.match(of("/", "Host", "a", "hOST", "b") ?? "", /more than one Host/);
    assert.match(of("/", "Host", "a", "Authorization", "x", "AUTHORIZATION", "x") ?? "", /Authorization/);
    assert.equal(of("/", "Host", "a", "Authorization", "x", "Link", "a", "Link", "b"), undefined);
    // A name of the same length as Authorization.
    assert.equal(of("/", "Host", "a", "If-None-Match", "x", "If-None-Match", "y"), undefined);
  });

  it("a target in absolute form must name the host of its Host header", () => {
    assert.match(of("http://evil.example/x", "Host", "svc.example") ?? "", /another host/);
    assert.match(of("http://svc.example:8080/x", "Host", "svc.example") ?? "", /another host/);
    for (const url of [
      "http://svc.example/x",
      "HTTP://SVC.example:80/x",
      "https://user:x@svc.example?y",
      "*",
      "/http://evil.example",
    ]) {
      assert.equal(of(url, "Host", "svc.example"), undefined, url);
    }
  });
});
