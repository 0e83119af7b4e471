import assert from "node:assert/strict";
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { after, before, beforeEach, describe, it } from "node:test";
import { silentLogger, systemClock } from "@devplat/base";
import type { AuditEvent } from "../audit/audit-event.ts";
import { codeHostFor } from "../code-host/code-host-for.ts";
import { createListener } from "../http/server/listener.ts";
import { VirtualHosts } from "../http/routing/virtual-host.ts";
import { OwnAddress } from "../own-address.ts";
import { ScopeAuthorizers } from "../scopes/scope-authorizers.ts";
import { Metrics } from "../telemetry/metrics.ts";
import type { CredentialCheck } from "../tokens/admission.ts";
import { holdsTokenPrefix } from "../credentials/token-format.ts";
import { UpstreamConnections } from "../upstream/upstream-connections.ts";
import { ApiRoutes } from "./api-routes.ts";
import { ApiUpstream } from "./api-upstream.ts";
import { HostIds } from "./host-ids.ts";
import { LimitedRequests } from "./limited-requests.ts";

const IDLE_MS = 1000;
let host: Server;
let service: Server;
let upstream: ApiUpstream;
let url: string;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let seen: { method: string; url: string; authorization: string | undefined; body: string }[];
let renewals: number;
let renewed: string | undefined;
const events: AuditEvent[] = [];

/** A token for everything, whose credential the code host may refuse. */
const credentials: CredentialCheck = {
  admit: async () => Promise.reject(new Error("the API asks authenticate")),
  authenticate: async () => {
    const principal = { kind: "proxy_token", login: "alice", tokenId: "t" } as const;
    return {
      kind: "caller",
      principal,
      limits: { repositories: ["*"], scopes: { "*": "write" } },
      permits: () => undefined,
      forward: async () => ({
        kind: "forward",
        authorization: "Bearer old",
        principal,
        whenUnauthorized: "connect the account again",
        renew: async () => {
          renewals++;
          return renewed;
        },
      }),
    };
  },
  carriesOwnToken: holdsTokenPrefix,
  foreignCredentialRefusal: () => undefined,
};

before(async () => {
  host = createServer((request, response) => {
    const { method = "", url: target = "", headers } = request;
    void readText(request).then(
      (body) => {
        seen.push({ method, url: target, authorization: headers.authorization, body });
        answer(request, response);
      },
      () => undefined,
    );
  });
  const hostUrl = await listening(host);
  const codeHost = codeHostFor({ kind: "github", url: hostUrl, api_url: undefined });
  const metrics = new Metrics({ version: "0", processMetrics: false, activeRepositories: () => 0 });
  upstream = new ApiUpstream({ connections: new UpstreamConnections(), metrics, idleMs: IDLE_MS });
  const ids = new HostIds({ upstream, host: codeHost, userAgent: "svc", clock: systemClock });
  const address = new OwnAddress("http://svc.example");
  const api = new ApiRoutes({
    codeHost,
    credentials,
    limited: new LimitedRequests(new ScopeAuthorizers("github"), ids),
    upstream,
    address,
    audit: { record: (event) => void events.push(event) },
    logger: silentLogger,
  });
  service = createListener({
    virtualHosts: new VirtualHosts({
      baseUrl: "http://svc.example",
      hostUrl: "http://code.example",
      apiUrl: "http://api.example",
    }),
    git: { handle: async () => undefined },
    api,
    management: (_request, response) => void response.writeHead(404).end(),
    metrics,
    accessLog: silentLogger,
    logger: silentLogger,
    withCache: false,
    ownToken: holdsTokenPrefix,
  }).server as Server;
  url = await listening(service);
});
after(async () => {
  service.closeAllConnections();
  host.closeAllConnections();
  service.close();
  host.close();
  await upstream.close();
});
beforeEach(() => {
  seen = [];
  renewals = 0;
  renewed = undefined;
  events.length = 0;
  answer = (request, response) => {
    const good = request.headers.authorization === "Bearer new";
    response.writeHead(good ? 200 : 401, { "content-type": "application/json" }).end("{}");
  };
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("a swapped credential that the code host refuses", () => {
  it("is renewed once, and the request made again", async () => {
    renewed = "Bearer new";
    const got = await fetch(`${url}/api/v3/user`);
    assert.deepEqual(
      [got.status, renewals, seen.map(({ authorization }) => authorization)],
      [200, 1, ["Bearer old", "Bearer new"]],
    );
  });

  it("is 403 with what to do, where nothing better is there, or that is refused too", async () => {
    for (const next of [undefined, "Bearer also-old"]) {
      renewed = next;
      const got = await fetch(`${url}/api/v3/user`);
      assert.deepEqual(
        [got.status, ((await got.json()) as { message: string }).message],
        [403, "connect the account again"],
      );
    }
    assert.equal(renewals, 2);
  });

  it("is renewed, but a body that was streamed is not sent again", async () => {
    renewed = "Bearer new";
    const got = await fetch(`${url}/api/v3/repos/a/b/issues`, { method: "POST", body: "{}" });
    assert.deepEqual([got.status, renewals, seen.length], [403, 1, 1]);
    assert.deepEqual(
      events.map(({ action, outcome }) => [action, outcome]),
      [["api.write", "denied"]],
    );
  });
});

describe("the stream to the code host", () => {
  it("silence is 504 with the code host's name; a broken connection is 502", async () => {
    answer = () => undefined;
    const silent = await fetch(`${url}/api/v3/user`);
    assert.equal(silent.status, 504);
    assert.match(((await silent.json()) as { message: string }).message, /127\.0\.0\.1:\d+ did not answer/);
    answer = (request) => void request.socket.destroy();
    assert.equal((await fetch(`${url}/api/v3/user`)).status, 502);
  });

  it("a response that breaks off is broken off, not ended", async () => {
    answer = (request, response) => {
      response.writeHead(200, { "content-length": "100" }).write("half");
      setImmediate(() => request.socket.destroy());
    };
    await assert.rejects(fetch(`${url}/api/v3/user`).then(async (got) => got.text()));
  });

  it("drops interim responses of the code host, and headers named by Connection", async () => {
    answer = (_request, response) => {
      response.writeEarlyHints({ link: "</x>; rel=preload" });
      response.writeHead(200, { connection: "keep-alive, x-page", "x-page": "1", "x-total": "2" }).end("{}");
    };
    const got = await fetch(`${url}/api/v3/user`);
    assert.deepEqual([got.status, got.headers.get("x-page"), got.headers.get("x-total")], [200, null, "2"]);
  });

  it("the address goes on as it came, query included, for a token without limits", async () => {
    answer = (_request, response) => void response.end("{}");
    await fetch(`${url}/api/v3/repos/a/b/contents/x%2Fy?ref=a%20b&ref=c`);
    assert.equal(seen[0]?.url, "/api/v3/repos/a/b/contents/x%2Fy?ref=a%20b&ref=c");
  });

  it("a path that climbs is refused, for every credential", async () => {
    for (const path of ["/api/v3/x/%2e%2e/%2e%2e/admin", "/api/v3/..%2f..%2fadmin", "/api/v3/x/.%2e"]) {
      // Not fetch: it would resolve the dots itself.
      const status = await new Promise<number | undefined>((resolve, reject) => {
        get(url, { path }, (got) => {
          got.resume();
          resolve(got.statusCode);
        }).on("error", reject);
      });
      assert.equal(status, 400, path);
    }
    assert.equal(seen.length, 0);
  });
});
