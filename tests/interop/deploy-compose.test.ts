import assert from "node:assert/strict";
import { cp, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { parse } from "yaml";
import { run, tempFolder, type Finished, type TempFolder } from "@devplat/testkit";
import { loadConfig } from "../../apps/svc/src/config/load.ts";

const ROOT = join(import.meta.dirname, "../..");
const COMPOSE = join(ROOT, "deploy/compose");
const ADDRESS = "https://git-proxy.example.com";

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly read_only?: boolean;
  readonly restart?: string;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly healthcheck?: { readonly test?: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly stop_grace_period?: string;
  readonly ports?: readonly string[];
}
interface Project {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** The files themselves. tests/release/compose starts the containers. */
describe("deploy/compose", () => {
  let folder: TempFolder;
  let work: string;
  let copies = 0;
  before(async () => void (folder = await tempFolder("deploy-compose")));
  after(() => folder.remove());
  beforeEach(async () => {
    work = join(folder.path, `copy-${copies++}`);
    await cp(COMPOSE, work, { recursive: true });
  });

  const init = (...args: readonly string[]): Promise<Finished> => run("sh", [join(work, "init.sh"), ...args]);
  const contents = async (): Promise<string> => {
    const secrets = await readdir(join(work, "secrets"));
    const files = [...secrets.map((name) => join("secrets", name)), ".env", "svc.yaml"];
    return JSON.stringify(
      await Promise.all(files.map(async (file) => [file, await readFile(join(work, file), "utf8")])),
    );
  };
  const project = async (...files: readonly string[]): Promise<Project> => {
    const named = ["compose.yaml", ...files].flatMap((file) => ["--file", file]);
    const env = { PATH: process.env["PATH"], HOME: folder.path };
    const { code, stdout, stderr } = await run("docker-compose", [...named, "config"], { cwd: work, env });
    assert.equal(code, 0, stderr);
    return parse(stdout) as Project;
  };

  it("makes secrets in a closed folder, and configuration that the service accepts", async () => {
    const { code, stderr } = await init(`${ADDRESS}/`);
    assert.equal(code, 0, stderr);
    const secrets = join(work, "secrets");
    assert.equal((await stat(secrets)).mode & 0o777, 0o700);
    for (const name of await readdir(secrets))
      assert.equal((await stat(join(secrets, name))).mode & 0o777, 0o444, name);
    const { services } = await project();
    const { config, warnings } = await loadConfig({
      file: join(work, "svc.yaml"),
      environment: { ...services["svc-a"]?.environment, CREDENTIALS_DIRECTORY: secrets },
      workingDirectory: work,
    });
    assert.deepEqual(warnings, []);
    const password = await readFile(join(secrets, "postgres.password"), "utf8");
    assert.equal(config.database.dsn?.reveal(), `postgres://svc:${password}@postgres/svc?sslmode=disable`);
    assert.equal(config.encryption.key?.reveal().length, 64);
    assert.equal(config.server.base_url, ADDRESS);
    assert.deepEqual(config.server.trusted_proxies.length, 1);
    assert.ok(config.cache.object_secret_access_key?.reveal());
  });

  it("keeps every file at a second run, and makes other secrets in another folder", async () => {
    await init(ADDRESS);
    const first = await contents();
    const { stdout } = await init("https://other.example.com");
    assert.equal(await contents(), first);
    assert.doesNotMatch(stdout, /^made/m);
    work = join(folder.path, `copy-${copies++}`);
    await cp(COMPOSE, work, { recursive: true });
    await init(ADDRESS);
    const key = /"secrets\/encryption\.key","(\w+)"/;
    assert.notEqual(key.exec(await contents())?.[1], key.exec(first)?.[1]);
  });

  for (const address of [[], ["git-proxy.example.com"], ["https://x/|s"]])
    it(`makes nothing without an address: ${address.join() || "none"}`, async () => {
      const { code, stderr } = await init(...address);
      assert.equal(code, 2);
      assert.match(stderr, /^init\.sh: /);
      await assert.rejects(stat(join(work, "secrets")), { code: "ENOENT" });
    });

  it("has no secret in it, and images without the name of a registry", async () => {
    for (const file of await readdir(COMPOSE, { recursive: true, withFileTypes: true })) {
      if (!file.isFile() || /^(?:svc\.yaml|\.env)$/.test(file.name) || file.parentPath.endsWith("secrets"))
        continue;
      const text = await readFile(join(file.parentPath, file.name), "utf8");
      assert.doesNotMatch(text, /password["']?[:=] *["']?\w{4}|minioadmin|changeme/i, file.name);
    }
    const { services } = await project();
    for (const { image } of Object.values(services))
      assert.match(image, /^[\w-]+(?:\/[\w-]+)?(?::[\w.-]+)?$/);
  });

  it("restarts, checks and restricts every service", async () => {
    const { services, volumes } = await project();
    for (const [name, service] of Object.entries(services)) {
      assert.equal(service.restart, "unless-stopped", name);
      assert.equal(service.read_only, true, name);
      assert.deepEqual(service.cap_drop, ["ALL"], name);
      assert.deepEqual(service.security_opt, ["no-new-privileges:true"], name);
      assert.ok(service.healthcheck?.test, name);
      for (const { condition } of Object.values(service.depends_on ?? {}))
        assert.equal(condition, "service_healthy", name);
    }
    const published = Object.entries(services).filter(([, { ports }]) => ports !== undefined);
    assert.deepEqual(
      published.map(([name]) => name),
      ["nginx"],
    );
    assert.deepEqual(Object.keys(volumes).toSorted(), [
      "a-cache",
      "a-data",
      "b-cache",
      "b-data",
      "postgres",
      "s3",
    ]);
  });

  it("gives running clones the time of server.drain_seconds", async () => {
    const { services } = await project();
    for (const name of ["svc-a", "svc-b"]) {
      const { environment = {}, stop_grace_period: grace = "" } = services[name] ?? {};
      const [, minutes = "0", seconds = "0"] = /^(?:(\d+)m)?(?:(\d+)s)?$/.exec(grace) ?? [];
      const drain = Number(environment["SVC_SERVER_DRAIN_SECONDS"]);
      assert.ok(drain > 0 && Number(minutes) * 60 + Number(seconds) >= drain + 15, grace);
    }
  });

  it("publishes TLS with the second file, in place of the server for plain HTTP", async () => {
    await init(ADDRESS);
    for (const name of ["tls.crt", "tls.key"]) await writeFile(join(work, "secrets", name), "");
    const { services } = await project("compose.tls.yaml");
    assert.equal(services["nginx"]?.ports?.length, 2);
    assert.match(JSON.stringify(services["nginx"]), /https\.conf:\/etc\/nginx\/svc\/server\.conf/);
    assert.doesNotMatch(JSON.stringify(services["nginx"]), /http\.conf:/);
  });

  it("balances with the lines of the guide", async () => {
    const guide = await readFile(join(ROOT, "docs/svc/several-instances.md"), "utf8");
    const [, block = ""] = /\nnginx:\n\n```nginx\n([^]*?)```/.exec(guide) ?? [];
    const lines = (text: string): string[] => text.split("\n").map((line) => line.trim());
    const ours = new Set(
      (
        await Promise.all(
          ["nginx.conf", "proxy.conf"].map((name) => readFile(join(COMPOSE, "nginx", name), "utf8")),
        )
      ).flatMap(lines),
    );
    const expected = lines(block).filter((line) => !/^(?:server |server_|listen|ssl_|$)/.test(line));
    assert.ok(expected.length > 12);
    for (const line of expected) assert.ok(ours.has(line), line);
  });
});
