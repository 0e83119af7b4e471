import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  SVC_LAUNCHER,
  run,
  startPostgres,
  startS3Proxy,
  startVersityGateway,
  tempFolder,
  type TempFolder,
  type VersityGateway,
} from "@devplat/testkit";

const KEY = "ab".repeat(32);

interface Report {
  readonly findings: readonly { readonly check: string; readonly state: string; readonly detail: string }[];
}

describe("svc doctor --bucket", () => {
  let server: VersityGateway;
  let folder: TempFolder;
  before(async () => {
    server = await startVersityGateway({ users: { READER: "planted-secret" } });
    folder = await tempFolder("doctor-bucket");
    assert.equal((await svc({}, "migrate")).code, 0);
  });
  after(async () => {
    await server.stop();
    await folder.remove();
  });
  const svc = async (environment: Record<string, string>, ...args: string[]) => {
    await writeFile(join(folder.path, "svc.yaml"), `data_dir: ${folder.path}\n`);
    return run(SVC_LAUNCHER, ["--config", join(folder.path, "svc.yaml"), ...args], {
      env: {
        ...process.env,
        SVC_ENCRYPTION_KEY: KEY,
        SVC_CACHE_OBJECT_BUCKET: server.bucket,
        SVC_CACHE_OBJECT_ENDPOINT: server.endpoint,
        SVC_CACHE_OBJECT_ACCESS_KEY_ID: server.accessKeyId,
        SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: server.secretAccessKey,
        SVC_CACHE_STORAGE_PATH: "/team/cache/",
        ...environment,
      },
    });
  };
  const report = async (environment: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await svc(environment, "doctor", "--bucket", "--json");
    assert.doesNotMatch(stdout + stderr, /planted|secret\+of|abab/);
    const { findings } = JSON.parse(stdout) as Report;
    return { code, of: (check: string) => findings.find((each) => each.check === check) };
  };

  it("shows each ability, the id of the key, and the manifests", async () => {
    const { code, of } = await report();
    assert.equal(code, 0);
    assert.deepEqual(of("bucket")?.detail, "can be used");
    assert.deepEqual(of("put with If-Match")?.state, "ok");
    assert.match(of("key of manifests")?.detail ?? "", /^id [\da-f]{16}$/);
    assert.equal(of("manifests")?.detail, "0 of 0 cached repositories have one");
    const { stdout } = await svc({}, "doctor", "--bucket");
    assert.match(stdout, /^ok +concurrent puts with If-Match: yes$/m);
  });

  it("names missing permissions, and ends with code 1", async () => {
    await server.setPolicy({ READER: ["s3:GetObject", "s3:ListBucket"] });
    const { code, of } = await report({
      SVC_CACHE_OBJECT_ACCESS_KEY_ID: "READER",
      SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: "planted-secret",
    });
    assert.equal(code, 1);
    assert.match(of("put")?.detail ?? "", /s3:PutObject is missing/);
    assert.match(
      of("bucket")?.detail ?? "",
      /cannot be used: the credentials lack the permissions s3:PutObject/,
    );
  });

  it("does not count manifests of a bucket that it cannot reach", async () => {
    const { code, of } = await report({ SVC_CACHE_OBJECT_ENDPOINT: "http://127.0.0.1:1" });
    assert.equal(code, 1);
    assert.match(of("bucket")?.detail ?? "", /^cannot be used: /);
    assert.deepEqual(
      [of("manifests")?.state, of("manifests")?.detail],
      ["warning", "not read: the bucket cannot be used"],
    );
  });

  it("names the conditions that the bucket ignores, and ends with code 1", async () => {
    const proxy = await startS3Proxy(server.endpoint);
    try {
      proxy.inject(["put", "complete", "delete"], { withoutConditions: server });
      const { code, of } = await report({ SVC_CACHE_OBJECT_ENDPOINT: proxy.endpoint });
      assert.equal(code, 1);
      assert.deepEqual(of("put with If-Match")?.state, "fault");
      assert.match(of("bucket")?.detail ?? "", /does not honour conditions .*database\.driver: postgres/);
    } finally {
      await proxy.stop();
    }
  });

  it("a common Postgres replaces these conditions: they are warnings", async () => {
    const [proxy, postgres] = await Promise.all([startS3Proxy(server.endpoint), startPostgres()]);
    try {
      proxy.inject(["put", "complete", "delete"], { withoutConditions: server });
      const environment = {
        SVC_CACHE_OBJECT_ENDPOINT: proxy.endpoint,
        SVC_DATABASE_DRIVER: "postgres",
        SVC_DATABASE_DSN: await postgres.createDatabase(),
      };
      assert.equal((await svc(environment, "migrate")).code, 0);
      const { code, of } = await report(environment);
      assert.equal(of("put with If-Match")?.state, "warning");
      assert.equal(of("bucket")?.detail, "can be used; the database names the manifests");
      assert.equal(of("manifests")?.detail, "0 of 0 cached repositories have one");
      assert.equal(code, 0);
      await postgres.stop();
      const away = await report(environment);
      assert.equal(away.code, 1);
      assert.match(away.of("key of manifests")?.detail ?? "", /database/);
      assert.equal(away.of("put")?.state, "ok", "the bucket is examined without it");
      const all = JSON.parse((await svc(environment, "doctor", "--json")).stdout) as Report;
      const found = all.findings.find(({ check }) => check === "database (postgres)");
      assert.equal(found?.state, "fault");
      assert.doesNotMatch(found.detail, /\n/);
      assert.ok(
        all.findings.some(({ check }) => check === "service"),
        "the checks after it are made",
      );
    } finally {
      await Promise.all([proxy.stop(), postgres.stop()]);
    }
  });

  it("says that no bucket is set", async () => {
    const { code, of } = await report({ SVC_CACHE_OBJECT_BUCKET: "" });
    assert.deepEqual([code, of("bucket")?.state], [1, "fault"]);
  });
});
