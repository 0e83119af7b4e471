import { after, before, describe } from "node:test";
import { startMinio, startS3Proxy, startVersityGateway, type S3Proxy, type S3Server } from "@devplat/testkit";
import type { ObjectStore } from "./object-store.ts";
import { checkObjectStore, openTestStore } from "./object-store.test-kit.ts";

for (const [title, start] of [
  ["versitygw", () => startVersityGateway()],
  ["MinIO", () => startMinio()],
] as const) {
  describe(`S3ObjectStore on ${title}`, () => {
    let server: S3Server;
    let store: ObjectStore;
    before(async () => {
      server = await start();
      store = openTestStore(server);
    });
    after(async () => {
      await store.close();
      await server.stop();
    });
    checkObjectStore(() => store);
  });
}

describe("S3ObjectStore on a store that often fails for a moment", () => {
  let server: S3Server;
  let proxy: S3Proxy;
  let store: ObjectStore;
  before(async () => {
    server = await startVersityGateway();
    proxy = await startS3Proxy(server.endpoint);
    // Every third request of a kind is refused before the server gets it.
    proxy.inject("all", { status: 503, code: "SlowDown" }, Infinity, 3);
    store = openTestStore({ ...server, endpoint: proxy.endpoint });
  });
  after(async () => {
    await store.close();
    await proxy.stop();
    await server.stop();
  });
  checkObjectStore(() => store);
});
