import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  freePort,
  makeCertificate,
  run,
  type S3Server,
  startMinio,
  startS3Proxy,
  startVersityGateway,
  SVC_LAUNCHER,
  type TempFolder,
  tempFolder,
} from "@devplat/testkit";

const HOUR_MS = 3_600_000;

interface Finding {
  readonly check: string;
  readonly state: string;
  readonly detail: string;
}

describe("faults of the bucket, as svc doctor --bucket names them", () => {
  let plain: S3Server;
  let secure: S3Server;
  let minio: S3Server;
  let folder: TempFolder;
  let foreignCa: string;
  before(async () => {
    [plain, secure, minio, folder] = await Promise.all([
      startVersityGateway(),
      startVersityGateway({ tls: true }),
      startMinio(),
      tempFolder("bucket-faults"),
    ]);
    await writeFile(join(folder.path, "svc.yaml"), `data_dir: ${folder.path}\n`);
    foreignCa = (await makeCertificate(folder.path, ["DNS:foreign"])).certFile;
    assert.equal((await svc(plain, {}, "migrate")).code, 0);
  });
  after(async () => {
    await Promise.all([plain?.stop(), secure?.stop(), minio?.stop(), folder?.remove()]);
  });

  const svc = async (server: S3Server, change: Record<string, string>, ...args: string[]) =>
    run(SVC_LAUNCHER, ["--config", join(folder.path, "svc.yaml"), ...args], {
      env: {
        ...process.env,
        SVC_ENCRYPTION_KEY: "ab".repeat(32),
        SVC_CACHE_OBJECT_BUCKET: server.bucket,
        SVC_CACHE_OBJECT_ENDPOINT: server.endpoint,
        SVC_CACHE_OBJECT_REGION: server.region,
        SVC_CACHE_OBJECT_ACCESS_KEY_ID: server.accessKeyId,
        SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: server.secretAccessKey,
        ...(server.caFile !== undefined && { SVC_CACHE_OBJECT_CA_FILE: server.caFile }),
        ...change,
      },
    });

  /** The one line about the bucket. It names the remedy, and no other line repeats it. */
  async function faultOf(server: S3Server, change: Record<string, string>): Promise<string> {
    const { code, stdout, stderr } = await svc(server, change, "doctor", "--bucket", "--json");
    assert.equal(code, 1, stdout + stderr);
    assert.doesNotMatch(stdout + stderr, /planted/);
    const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
    const faults = findings.filter(({ state }) => state === "fault");
    const told = faults.find(({ check }) => check === "bucket")?.detail ?? "";
    const remedy = told.split("To repair it: ")[1];
    assert.ok(remedy !== undefined, stdout);
    assert.equal(faults.filter(({ detail }) => detail.includes(remedy)).length, 1, "told once");
    assert.doesNotMatch(told, /\n/);
    return remedy;
  }

  for (const name of ["versitygw", "minio"] as const) {
    const server = (): S3Server => (name === "minio" ? minio : plain);
    const rows: readonly (readonly [string, Record<string, string>, RegExp])[] = [
      [
        "no such bucket",
        { SVC_CACHE_OBJECT_BUCKET: "no-such-bucket" },
        /create it, or correct cache\.object_bucket/,
      ],
      ["a wrong key id", { SVC_CACHE_OBJECT_ACCESS_KEY_ID: "NOBODY" }, /correct cache\.object_access_key_id/],
      [
        "a wrong secret",
        { SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: "planted-secret" },
        /correct cache\.object_secret_access_key/,
      ],
      // MinIO takes every region.
      ...(name === "minio"
        ? []
        : [
            [
              "a wrong region",
              { SVC_CACHE_OBJECT_REGION: "eu-west-3" },
              /set cache\.object_region to /,
            ] as const,
          ]),
    ];
    for (const [fault, change, remedy] of rows) {
      it(`${name}: ${fault} names its key and the remedy`, async () => {
        assert.match(await faultOf(server(), change), remedy);
      });
    }

    it(`${name}: https:// for a store without TLS names the endpoint`, async () => {
      const endpoint = server().endpoint.replace("http:", "https:");
      assert.match(
        await faultOf(server(), { SVC_CACHE_OBJECT_ENDPOINT: endpoint }),
        /http:\/\/ .*cache\.object_endpoint/,
      );
    });
  }

  it("an authority that is not trusted names the CA file", async () => {
    const self = await faultOf(secure, { SVC_CACHE_OBJECT_CA_FILE: "" });
    assert.match(self, /set cache\.object_ca_file/);
    const foreign = await faultOf(secure, { SVC_CACHE_OBJECT_CA_FILE: foreignCa });
    assert.match(foreign, /set cache\.object_ca_file/);
  });

  it("a CA file that cannot be read names its key", async () => {
    const missing = join(folder.path, "none.pem");
    assert.match(
      await faultOf(secure, { SVC_CACHE_OBJECT_CA_FILE: missing }),
      /correct cache\.object_ca_file/,
    );
  });

  it("http:// for a store with TLS names the endpoint", async () => {
    const endpoint = secure.endpoint.replace("https:", "http:");
    assert.match(
      await faultOf(secure, { SVC_CACHE_OBJECT_ENDPOINT: endpoint }),
      /https:\/\/ .*cache\.object_endpoint/,
    );
  });

  it("a certificate for another name says which name to use", async () => {
    const endpoint = secure.endpoint.replace("127.0.0.1", "localhost");
    assert.match(
      await faultOf(secure, { SVC_CACHE_OBJECT_ENDPOINT: endpoint }),
      /for another name: use that name in cache\.object_endpoint/,
    );
  });

  it("a bucket in the host name that nobody knows names the path style", async () => {
    const endpoint = plain.endpoint.replace("127.0.0.1", "store.invalid");
    const change = { SVC_CACHE_OBJECT_ENDPOINT: endpoint };
    const hosted = await faultOf(plain, { ...change, SVC_CACHE_OBJECT_PATH_STYLE: "false" });
    assert.match(hosted, /cache\.object_path_style: true/);
    assert.match(await faultOf(plain, change), /host name is not known here: correct cache\.object_endpoint/);
  });

  it("a port where nothing listens names the endpoint", async () => {
    const change = { SVC_CACHE_OBJECT_ENDPOINT: `http://127.0.0.1:${await freePort()}` };
    assert.match(await faultOf(plain, change), /nothing listens there: .*cache\.object_endpoint/);
  });

  it("clocks that differ and cannot be learned name the clock", async () => {
    const proxy = await startS3Proxy(plain.endpoint);
    try {
      // A proxy that hides the clock of the store.
      proxy.inject(["put", "get", "head", "list"], {
        response: {
          status: 403,
          headers: { date: new Date(Date.now() + HOUR_MS).toUTCString() },
          body: "<Error><Code>RequestTimeTooSkewed</Code></Error>",
        },
      });
      assert.match(await faultOf(plain, { SVC_CACHE_OBJECT_ENDPOINT: proxy.endpoint }), /correct the clock/);
    } finally {
      await proxy.stop();
    }
  });
});
