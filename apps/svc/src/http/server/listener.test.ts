import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { silentLogger } from "@devplat/base";
import { until } from "@devplat/testkit";
import { Metrics } from "../../telemetry/metrics.ts";
import { VirtualHosts } from "../routing/virtual-host.ts";
import { createListener } from "./listener.ts";

describe("createListener", () => {
  it("counts a request in flight until its response is complete or its client left", async () => {
    const metrics = new Metrics({ version: "1", processMetrics: false });
    const held: ServerResponse[] = [];
    const web = createListener({
      virtualHosts: new VirtualHosts({
        baseUrl: "http://svc.example",
        hostUrl: "http://code.example",
        apiUrl: "http://api.example",
      }),
      git: { handle: async () => undefined },
      management: (_, response) => void held.push(response),
      metrics,
      accessLog: silentLogger,
      logger: silentLogger,
      withCache: false,
      ownToken: () => false,
    });
    const { server } = web;
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const shows = async (count: number): Promise<boolean> =>
      new RegExp(`^svc_requests_in_flight ${count}$`, "m").test((await metrics.render()).body);
    const send = (): ReturnType<typeof connect> => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined).write("GET /admin HTTP/1.1\r\nHost: x\r\n\r\n");
      return socket;
    };
    try {
      assert.ok(await shows(0));
      const [leaving] = [send(), send()];
      await until(() => held.length === 2);
      assert.ok(await shows(2));
      leaving?.destroy();
      await until(async () => shows(1));
      for (const response of held) response.end();
      await until(async () => shows(0));
    } finally {
      web.closeAll();
      server.close();
    }
  });
});
