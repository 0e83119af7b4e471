import { Secret } from "@devplat/base";
import { fixedCredentials, type ObjectStore } from "@devplat/object-store";
import { openS3Store, type S3Settings } from "@devplat/object-store/s3";
import { startMinio, startS3Proxy, startVersityGateway, type S3Proxy, type S3Server } from "@devplat/testkit";

/** A real S3 server behind a proxy that counts requests and fails when it is told to. */
export interface TestBucket {
  readonly server: S3Server;
  readonly proxy: S3Proxy;
  /** A client behind the proxy. All clients are closed at the end. */
  client(settings?: Partial<S3Settings>): ObjectStore;
  stop(): Promise<void>;
}

/** Both servers of the tests. */
export const S3_SERVERS: readonly (readonly [name: string, start: () => Promise<S3Server>])[] = [
  ["versitygw", startVersityGateway],
  ["minio", startMinio],
];

export async function startTestBucket(start: () => Promise<S3Server>): Promise<TestBucket> {
  const server = await start();
  const proxy = await startS3Proxy(server.endpoint);
  const clients: ObjectStore[] = [];
  return {
    server,
    proxy,
    client(settings = {}) {
      const client = openS3Store({
        endpoint: proxy.endpoint,
        bucket: server.bucket,
        region: server.region,
        credentials: fixedCredentials(server.accessKeyId, new Secret(server.secretAccessKey)),
        // The tests run with others on the same machine.
        timeoutMs: 20_000,
        ...settings,
      });
      clients.push(client);
      return client;
    },
    async stop() {
      for (const client of clients) await client.close();
      await proxy.stop();
      await server.stop();
    },
  };
}
