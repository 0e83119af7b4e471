import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, it } from "node:test";
import { run } from "../process.ts";
import { startS3Proxy } from "./proxy.ts";
import { startMinio, startVersityGateway, type S3Server } from "./servers.ts";

const STATUS = ["-o", "/dev/null", "-w", "%{http_code}"];

/** curl signs by itself, so that the servers are tested without code of this project. */
async function curl(server: S3Server, endpoint: string, path: string, body: string, args: readonly string[]) {
  const user = `${server.accessKeyId}:${server.secretAccessKey}`;
  const payload = `x-amz-content-sha256: ${hash("sha256", body)}`;
  const signed = ["--aws-sigv4", `aws:amz:${server.region}:s3`, "--user", user, "-H", payload];
  const tls = server.caFile === undefined ? [] : ["--cacert", server.caFile];
  const send = body === "" ? [] : ["-X", "PUT", "--data-binary", body];
  return run("curl", ["-sS", ...tls, ...signed, ...send, ...args, `${endpoint}/${server.bucket}/${path}`]);
}
const get = async (server: S3Server, path: string): Promise<string> =>
  (await curl(server, server.endpoint, path, "", STATUS)).stdout;
const put = async (server: S3Server, path: string): Promise<string> =>
  (await curl(server, server.endpoint, path, "text", STATUS)).stdout;

describe("S3 servers", () => {
  for (const start of [startVersityGateway, startMinio]) {
    it(`${start.name} keeps its objects and its address over a restart`, async () => {
      const server = await start();
      try {
        assert.equal(await put(server, "a"), "200");
        assert.equal(await get(server, "b"), "404");
        await server.restart();
        assert.equal(await get(server, "a"), "200");
        assert.equal((await run("curl", ["-s", `${server.endpoint}/tests/a`, ...STATUS])).stdout, "403");
      } finally {
        await server.stop();
      }
    });
  }

  it("startVersityGateway with TLS and users serves what the policy allows", async () => {
    const server = await startVersityGateway({ tls: true, users: { READER: "reader-secret" } });
    try {
      await server.setPolicy({ READER: ["s3:GetObject", "s3:ListBucket"] });
      const reader = { ...server, accessKeyId: "READER", secretAccessKey: "reader-secret" };
      assert.equal(await put(server, "a"), "200");
      assert.equal(await get(reader, "a"), "200");
      assert.equal(await put(reader, "a"), "403");
    } finally {
      await server.stop();
    }
  });

  it("the proxy passes requests, counts them, and has each fault", async () => {
    const server = await startVersityGateway();
    const proxy = await startS3Proxy(server.endpoint);
    const read = (...args: string[]) => curl(server, proxy.endpoint, "a", "", args);
    const write = (text: string) => curl(server, proxy.endpoint, "a", text, ["-w", "%{http_code}"]);
    try {
      assert.equal((await write("first")).stdout, "200");
      assert.equal((await read()).stdout, "first");
      assert.equal(proxy.counts.put, 1);
      assert.equal(proxy.counts.get, 1);

      assert.equal((await write("second")).stdout, "200");
      proxy.inject(["get"], { stale: true }, 1);
      assert.equal((await read()).stdout, "first");
      proxy.inject(["get"], { corruptAt: 1 }, 1);
      assert.notEqual((await read()).stdout, "second");
      proxy.inject(["get"], { cutAfterBytes: 3 }, 1);
      assert.deepEqual(await read().then(({ code, stdout }) => [code !== 0, stdout]), [true, "sec"]);
      proxy.inject(["get"], { stallAfterBytes: 3 }, 1);
      assert.deepEqual(await read("-m", "1").then(({ code, stdout }) => [code, stdout]), [28, "sec"]);
      proxy.inject(["get"], { hang: true }, 1);
      assert.equal((await read("-m", "1")).code, 28);
      proxy.inject(["get"], { status: 503, code: "SlowDown" }, 1);
      assert.match((await read()).stdout, /<Code>SlowDown</);
      proxy.inject(["get"], { dateOffsetMs: 3_600_000 }, 1);
      const head = (await read("-o", "/dev/null", "-D-")).stdout;
      assert.ok(Date.parse(/^date: (.*)$/im.exec(head)?.[1] ?? "") > Date.now() + 3_000_000);
      proxy.inject("all", { refuse: true }, 1);
      assert.equal((await write("third")).code, 52);
      assert.equal((await read()).stdout, "second");
      proxy.inject(["put"], { loseResponse: true }, 1);
      assert.equal((await write("fourth")).code, 52);
      assert.equal((await read()).stdout, "fourth");
      proxy.inject(["put"], { corruptRequestAt: 0 }, 1);
      assert.match((await write("fifth")).stdout, /<Error>/);
      const conditional = ["-w", "%{http_code}", "-H", 'if-match: "other"'];
      assert.match((await curl(server, proxy.endpoint, "a", "sixth", conditional)).stdout, /412$/);
      proxy.inject(["put"], { withoutConditions: server }, 1);
      assert.equal((await curl(server, proxy.endpoint, "a", "sixth", conditional)).stdout, "200");
      assert.equal((await read()).stdout, "sixth");
      await proxy.goAway();
      assert.equal((await read()).code, 7);
      await proxy.comeBack();
      assert.equal((await read()).stdout, "sixth");
    } finally {
      await proxy.stop();
      await server.stop();
    }
  });
});
