import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { ConfigError } from "@devplat/config";
import { cacheFolder } from "./cache-folder.ts";
import { loadConfig, type LoadedConfig } from "./load.ts";
import { isLoopbackAddress, parseListen } from "./listen.ts";
import { maskedConfig, printConfig } from "./print.ts";
import { ineffective, refuseUnusable, refuseUnusableBucket } from "./refusals.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-config-"));
after(() => rmSync(folder, { recursive: true, force: true }));

async function load(text: string, environment: Record<string, string> = {}): Promise<LoadedConfig> {
  writeFileSync(join(folder, "c.yaml"), text);
  return await loadConfig({ file: join(folder, "c.yaml"), environment, workingDirectory: folder });
}

async function faults(text: string, environment: Record<string, string> = {}): Promise<string> {
  try {
    await load(text, environment);
    return "";
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message.replaceAll(`${folder}/`, "");
  }
}

describe("configuration faults", () => {
  const table: [name: string, text: string, environment: Record<string, string>, expected: string][] = [
    [
      "an unknown key is named with what was meant",
      "server:\n  lsiten: :1\n",
      {},
      "c.yaml:2:3: server.lsiten: unknown key; did you mean 'listen'?",
    ],
    [
      "a listen address without a port",
      "server:\n  listen: localhost\n",
      {},
      "c.yaml:2:3: server.listen: expected :PORT, ADDRESS:PORT, [IPV6]:PORT or unix:PATH",
    ],
    [
      "a short encryption key is not quoted",
      "encryption: {key: abc123}\n",
      {},
      "c.yaml:1:14: encryption.key: expected 32 bytes as 64 hexadecimal digits (openssl rand -hex 32)",
    ],
    [
      "an address with a password",
      "host:\n  url: https://u:planted@x\n",
      {},
      "c.yaml:2:3: host.url: expected an http:// or https:// address without user name, query and fragment",
    ],
    [
      "a wrong value in the environment names the variable",
      "",
      { SVC_CACHE_ENABLED: "yes" },
      "SVC_CACHE_ENABLED: cache.enabled: expected true or false",
    ],
    [
      "a number out of range in the environment",
      "",
      { SVC_CACHE_GRANT_SECONDS: "3601" },
      "SVC_CACHE_GRANT_SECONDS: cache.grant_seconds: must be at most 3600",
    ],
    [
      "an unknown database driver",
      "",
      { SVC_DATABASE_DRIVER: "mysql" },
      "SVC_DATABASE_DRIVER: database.driver: expected one of: sqlite, postgres, vault",
    ],
    ["a list instead of a mapping", "- a\n", {}, "c.yaml:1:1: expected a mapping"],
    ["a section that is a text", "cache: yes\n", {}, "c.yaml:1:1: cache: expected a mapping"],
  ];
  for (const [name, text, environment, expected] of table) {
    it(name, async () => assert.equal(await faults(text, environment), expected));
  }

  it("name a configuration file that is not there", async () => {
    const file = join(folder, "none.yaml");
    const fault = { code: "config_unreadable", message: `${file}: no such file` };
    await assert.rejects(loadConfig({ file, environment: {}, workingDirectory: folder }), {
      ...fault,
      hint: "Check the path after --config.",
    });
    await assert.rejects(
      loadConfig({ file: undefined, environment: { SVC_CONFIG: file }, workingDirectory: folder }),
      { ...fault, hint: "Check the path in SVC_CONFIG." },
    );
  });
});

describe("configuration sources", () => {
  it("environment is over the file, and an empty variable is not set [svc 7.2]", async () => {
    const { config } = await load("cache: {grant_seconds: 5, tips_seconds: 7}\n", {
      SVC_CACHE_GRANT_SECONDS: "6",
      SVC_CACHE_TIPS_SECONDS: "",
    });
    assert.equal(config.cache.grant_seconds, 6);
    assert.equal(config.cache.tips_seconds, 7);
  });

  it("the mission's variable names set their keys [svc 7.1]", async () => {
    const { config, warnings } = await load("", {
      SVC_DEV_MODE: "true",
      SVC_HOST_URL: "http://127.0.0.1:3000/",
      SVC_HOST_API_URL: "http://127.0.0.1:3000/api",
      SVC_DATABASE_DRIVER: "sqlite",
      SVC_DATABASE_DSN: "x.db",
      SVC_SERVER_LISTEN: ":9000",
      SVC_CACHE_ENABLED: "true",
      SVC_CACHE_STORAGE_PATH: "/c",
      SVC_HOST_CLIENT_ID: "id",
      SVC_HOST_CLIENT_SECRET: "planted",
      SVC_HOST_APP_ID: "1",
      SVC_HOST_PRIVATE_KEY: "planted",
      SVC_ENCRYPTION_KEY: "ab".repeat(32),
      SVC_METRICS_LISTEN: ":9136",
      SVC_ADMINS: "alice, bob",
    });
    assert.deepEqual(warnings, []);
    assert.equal(config.dev.mode, true);
    assert.equal(config.host.url, "http://127.0.0.1:3000");
    assert.equal(config.database.dsn?.reveal(), "x.db");
    assert.deepEqual(config.admins, ["alice", "bob"]);
  });

  it("an unknown variable under the prefix is a warning with a suggestion", async () => {
    assert.deepEqual((await load("", { SVC_CACHE_ENABLE: "true", SVC_URL: "u", SVCX: "1" })).warnings, [
      "SVC_CACHE_ENABLE is not a setting and has no effect; did you mean SVC_CACHE_ENABLED?",
    ]);
  });

  it("the first of ./svc.yaml is read when nothing is named", async () => {
    writeFileSync(join(folder, "svc.yaml"), "data_dir: here\n");
    const loaded = await loadConfig({ file: undefined, environment: {}, workingDirectory: folder });
    assert.equal(loaded.file, join(folder, "svc.yaml"));
    assert.equal(loaded.config.data_dir, "here");
  });
});

describe("settings of the bucket", () => {
  it("have their defaults, and variables for each of them", async () => {
    const { config } = await load("", {
      SVC_CACHE_OBJECT_BUCKET: "bucket",
      SVC_CACHE_OBJECT_TIMEOUT_SECONDS: "0.5",
      SVC_CACHE_OBJECT_PATH_STYLE: "false",
    });
    const { cache } = config;
    assert.deepEqual(
      [
        cache.object_timeout_seconds,
        cache.object_upload_parallel,
        cache.object_queue_mb,
        cache.object_path_style,
      ],
      [0.5, 4, 4096, false],
    );
    assert.deepEqual([cache.object_encryption, cache.object_hide_names], ["none", false]);
    assert.equal((await load("")).config.cache.object_timeout_seconds, 2);
  });

  const faulty: readonly (readonly [variable: string, value: string, expected: string])[] = [
    ["OBJECT_BUCKET", "Bad_Bucket", "expected the name of a bucket"],
    ["OBJECT_ENDPOINT", "store:9000", "expected an http"],
    ["OBJECT_ENDPOINT", "https://store/bucket", "expected an address without a path"],
    ["OBJECT_KEY", "abc", "expected 32 bytes as 64 hexadecimal digits"],
    ["OBJECT_TIMEOUT_SECONDS", "0", "must be at least 0.1"],
    ["OBJECT_TIMEOUT_SECONDS", "61", "must be at most 60"],
    ["OBJECT_UPLOAD_PARALLEL", "65", "must be at most 64"],
    ["OBJECT_QUEUE_MB", "15", "must be at least 16"],
    ["OBJECT_ENCRYPTION", "aes", "expected one of: none, sse-s3, sse-kms"],
    ["LOCAL_MAX_SIZE_MB", "0", "must be at least 1"],
  ];
  for (const [variable, value, expected] of faulty) {
    it(`refuse ${value} as ${variable}`, async () => {
      const fault = await faults("", { [`SVC_CACHE_${variable}`]: value });
      assert.ok(fault.includes(expected), fault);
    });
  }

  it("make storage_path the prefix and local_path the folder", async () => {
    const folderOf = async (environment: Record<string, string>): Promise<string> =>
      cacheFolder((await load("", { SVC_DATA_DIR: "/d", ...environment })).config);
    const paths = { SVC_CACHE_STORAGE_PATH: "/s", SVC_CACHE_LOCAL_PATH: "/l" };
    assert.equal(await folderOf({}), "/d/cache");
    assert.equal(await folderOf(paths), "/s");
    assert.equal(await folderOf({ ...paths, SVC_CACHE_OBJECT_BUCKET: "bucket" }), "/l");
    assert.equal(
      await folderOf({ SVC_CACHE_STORAGE_PATH: "/s", SVC_CACHE_OBJECT_BUCKET: "bucket" }),
      "/d/cache",
    );
  });
});

describe("printing the configuration", () => {
  it("shows the region and the path style that are in effect", async () => {
    const printed = async (environment: Record<string, string>) =>
      maskedConfig((await load("", environment)).config)["cache"] as Record<string, unknown>;
    const bucket = { SVC_CACHE_OBJECT_BUCKET: "bucket" };
    const aws = await printed(bucket);
    assert.deepEqual([aws["object_region"], aws["object_path_style"]], ["us-east-1", false]);
    const other = await printed({ ...bucket, SVC_CACHE_OBJECT_ENDPOINT: "https://store/" });
    assert.deepEqual([other["object_endpoint"], other["object_path_style"]], ["https://store", true]);
    assert.equal("object_path_style" in (await printed({})), false);
  });

  it("masks every secret", async () => {
    const { config } = await load("", {
      SVC_DEV_HOST_TOKEN: "planted-1",
      SVC_DATABASE_DSN: "planted-2",
      SVC_ENCRYPTION_KEY: "ab".repeat(32),
      SVC_HOST_PRIVATE_KEY: "planted-3",
      SVC_HOST_CLIENT_SECRET: "planted-4",
      SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: "planted-5",
      SVC_CACHE_OBJECT_KEY: "ab".repeat(32),
      SVC_CACHE_OBJECT_KEY_PREVIOUS: "ab".repeat(32),
    });
    for (const printed of [printConfig(config), JSON.stringify(maskedConfig(config))]) {
      assert.doesNotMatch(printed, /planted|abab/);
      assert.match(printed, /••••/);
      assert.match(printed, /grant_seconds/);
    }
  });
});

describe("refusals", () => {
  const refused = async (environment: Record<string, string>): Promise<string> => {
    try {
      refuseUnusable((await load("", environment)).config);
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };

  it("a bucket is taken, and half of its credentials refuses the start with one line [svc 7.4]", async () => {
    assert.equal(await refused({ SVC_CACHE_OBJECT_BUCKET: "bucket" }), "");
    const half = { SVC_CACHE_OBJECT_BUCKET: "bucket", SVC_CACHE_OBJECT_ACCESS_KEY_ID: "planted" };
    assert.match(await refused(half), /belong together/);
    assert.doesNotMatch(await refused(half), /planted|\n/);
  });

  it("development mode refuses an explicit address that others reach, unless told to [svc 7.5]", async () => {
    assert.match(
      await refused({ SVC_DEV_MODE: "true", SVC_SERVER_LISTEN: "0.0.0.0:1" }),
      /SVC_DEV_MODE_UNSAFE/,
    );
    assert.equal(
      await refused({ SVC_DEV_MODE: "true", SVC_SERVER_LISTEN: "0.0.0.0:1", SVC_DEV_MODE_UNSAFE: "true" }),
      "",
    );
    for (const listen of [":8080", "127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/s"]) {
      assert.equal(await refused({ SVC_DEV_MODE: "true", SVC_SERVER_LISTEN: listen }), "", listen);
    }
    assert.equal(await refused({ SVC_SERVER_LISTEN: "0.0.0.0:1" }), "");
  });

  it("warns of settings without effect, without a sign-in and without admins", async () => {
    const { config } = await load("", { SVC_DEV_MODE_UNSAFE: "true" });
    const about = (warnings: readonly string[]): unknown[] => warnings.map((each) => each.split(" ")[0]);
    assert.deepEqual(about(ineffective(config)), ["host.client_id", "admins", "dev.mode_unsafe"]);
    const client = { SVC_HOST_CLIENT_ID: "x", SVC_HOST_CLIENT_SECRET: "planted", SVC_ADMINS: "ada" };
    assert.deepEqual(about(ineffective((await load("", client)).config)), ["server.base_url"]);
    const whole = { ...client, SVC_SERVER_BASE_URL: "https://git.example" };
    assert.deepEqual(ineffective((await load("", whole)).config), []);
    assert.deepEqual(ineffective((await load("", { SVC_DEV_MODE: "true" })).config), []);
    const unwise = {
      ...client,
      SVC_SERVER_TRUSTED_PROXIES: "10.0.0.1,0.0.0.0/0",
      SVC_HOST_URL: "http://code.example",
      SVC_ENCRYPTION_KEY: "0".repeat(64),
      SVC_SERVER_BASE_URL: "https://git.example/svc",
    };
    const warned = ineffective((await load("", unwise)).config);
    assert.deepEqual(about(warned), [
      "server.trusted_proxies",
      "host.url",
      "encryption.key",
      "server.base_url",
    ]);
    assert.doesNotMatch(warned.join(), /000/);
  });

  it("warns if server.accel cannot work, or must be reached over another address", async () => {
    const accel = {
      SVC_SERVER_ACCEL: "nginx",
      SVC_SERVER_ACCEL_SECRET: "s".repeat(32),
      SVC_CACHE_ENABLED: "true",
    };
    const warned = async (listen: string, environment: Record<string, string> = {}): Promise<boolean> => {
      const loaded = await load("", { ...accel, SVC_SERVER_LISTEN: listen, ...environment });
      return ineffective(loaded.config).some((each) => each.startsWith("server.accel works only over"));
    };
    for (const listen of ["127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/s"]) {
      assert.equal(await warned(listen), false, listen);
    }
    for (const listen of ["10.1.2.3:8080", "0.0.0.0:1", ":1"])
      assert.equal(await warned(listen), true, listen);
    // In development mode, no host is loopback only.
    assert.equal(await warned(":1", { SVC_DEV_MODE: "true" }), false);
    assert.equal(await warned("10.1.2.3:1", { SVC_SERVER_ACCEL: "" }), false);
  });

  it("takes cache.accel_group by name or number, in the file and in the environment", async () => {
    const group = async (text: string, environment: Record<string, string> = {}): Promise<unknown> =>
      (await load(text, environment)).config.cache.accel_group;
    for (const given of ["33", '"33"']) {
      const { config } = await load(`cache:\n  accel_group: ${given}\n`);
      assert.equal(config.cache.accel_group, "33", given);
      // The printed configuration can be read again.
      assert.equal(await group(printConfig(config)), "33", given);
    }
    assert.equal(await group("cache: {accel_group: 0}"), "0");
    assert.equal(await group("cache: {accel_group: web}"), "web");
    assert.equal(await group("", { SVC_CACHE_ACCEL_GROUP: "33" }), "33");
    for (const wrong of ["true", "-1", "1.5", "[web]", "''"]) {
      assert.equal(
        await faults(`cache:\n  accel_group: ${wrong}\n`),
        "c.yaml:2:3: cache.accel_group: expected the name or the number of a group",
        wrong,
      );
    }
  });

  it("settings of a bucket that do not fit together are refused", async () => {
    const bucket = async (environment: Record<string, string>): Promise<string> => {
      const key = { SVC_ENCRYPTION_KEY: "ab".repeat(32), SVC_CACHE_OBJECT_BUCKET: "bucket" };
      const { config } = await load("", { ...key, ...environment });
      try {
        refuseUnusableBucket(config);
        return "";
      } catch (error) {
        return (error as Error).message;
      }
    };
    assert.equal(await bucket({}), "");
    for (const half of ["SVC_CACHE_OBJECT_ACCESS_KEY_ID", "SVC_CACHE_OBJECT_SECRET_ACCESS_KEY"]) {
      assert.match(await bucket({ [half]: "planted" }), /belong together/);
      assert.doesNotMatch(await bucket({ [half]: "planted" }), /planted/);
    }
    assert.match(await bucket({ SVC_CACHE_OBJECT_ENCRYPTION_KEY_ID: "k" }), /sse-kms/);
    // The key of development mode is on this machine only.
    const generated = { SVC_DEV_MODE: "true", SVC_ENCRYPTION_KEY: "" };
    assert.match(await bucket(generated), /development mode.*cache\.object_key/);
    assert.equal(await bucket({ ...generated, SVC_CACHE_OBJECT_KEY: "cd".repeat(32) }), "");
    assert.equal(await bucket({ SVC_DEV_MODE: "true" }), "");
  });

  it("warns of settings of a bucket without effect, and of a plain connection", async () => {
    const warned = async (environment: Record<string, string>): Promise<string> =>
      ineffective((await load("", { SVC_DEV_MODE: "true", ...environment })).config).join("\n");
    assert.equal(
      await warned({ SVC_CACHE_LOCAL_PATH: "/x", SVC_CACHE_OBJECT_QUEUE_MB: "16" }),
      "without cache.object_bucket these have no effect: cache.local_path, cache.object_queue_mb",
    );
    const bucket = { SVC_CACHE_OBJECT_BUCKET: "bucket", SVC_CACHE_ENABLED: "true" };
    assert.equal(await warned(bucket), "");
    assert.match(await warned({ ...bucket, SVC_CACHE_ENABLED: "false" }), /no effect without cache\.enabled/);
    assert.match(await warned({ ...bucket, SVC_CACHE_OBJECT_ENDPOINT: "http://store:9000" }), /in the clear/);
    assert.equal(await warned({ ...bucket, SVC_CACHE_OBJECT_ENDPOINT: "http://127.0.0.1:9000" }), "");
    const asPrefix = { ...bucket, SVC_CACHE_STORAGE_PATH: "/var/cache/svc" };
    assert.match(await warned(asPrefix), /looks like a folder: set cache\.local_path/);
    assert.equal(await warned({ ...asPrefix, SVC_CACHE_LOCAL_PATH: "/var/cache/svc" }), "");
  });

  it("half an OAuth client, half an app, and an app with Gitea are refused", async () => {
    for (const environment of [{ SVC_HOST_CLIENT_ID: "x" }, { SVC_HOST_CLIENT_SECRET: "planted" }]) {
      assert.match(await refused(environment), /^host\.client_id and host\.client_secret belong together/);
      assert.doesNotMatch(await refused(environment), /planted/);
    }
    for (const environment of [{ SVC_HOST_APP_ID: "1" }, { SVC_HOST_PRIVATE_KEY: "planted" }]) {
      assert.match(await refused(environment), /^host\.app_id and host\.private_key belong together/);
      assert.doesNotMatch(await refused(environment), /planted/);
    }
    const app = { SVC_HOST_KIND: "gitea", SVC_HOST_APP_ID: "1", SVC_HOST_PRIVATE_KEY: "x" };
    assert.match(await refused(app), /Gitea knows no apps/);
    assert.equal(await refused({ SVC_HOST_KIND: "gitea" }), "");
  });
});

describe("a listen address", () => {
  it("has these forms [svc 7.7]", () => {
    assert.deepEqual(parseListen(":0"), { kind: "tcp", host: undefined, port: 0 });
    assert.deepEqual(parseListen("[::1]:80"), { kind: "tcp", host: "::1", port: 80 });
    assert.deepEqual(parseListen("unix:/run/s"), { kind: "unix", path: "/run/s" });
    for (const text of ["", "80", "a:b", ":70000", "unix:", "::1:80", "http://x:1"]) {
      assert.equal(parseListen(text), undefined, text);
    }
  });

  it("is loopback only where nothing else reaches it", () => {
    assert.equal(isLoopbackAddress({ kind: "tcp", host: "::1", port: 1 }), true);
    assert.equal(isLoopbackAddress({ kind: "tcp", host: "::", port: 1 }), false);
    assert.equal(isLoopbackAddress({ kind: "tcp", host: undefined, port: 1 }), false);
  });
});

describe("credentials of the service manager", () => {
  const directory = join(folder, "credentials");
  mkdirSync(directory);
  const key = "ab".repeat(32);
  const environment = { CREDENTIALS_DIRECTORY: directory };
  const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);

  it("replace values of the file, and are replaced by variables", async () => {
    write("encryption.key", `${key}\n`);
    write("admins", "ada,bob\n");
    write("tls.pem", "not a key of the configuration");
    const text = `encryption: {key: ${"cd".repeat(32)}}\nadmins: [eve]\n`;
    const { config, warnings } = await load(text, { ...environment, SVC_ADMINS: "carol" });
    assert.equal(config.encryption.key?.reveal(), key);
    assert.deepEqual(config.admins, ["carol"]);
    assert.deepEqual(warnings, []);
    assert.deepEqual((await load(text, environment)).config.admins, ["ada", "bob"]);
  });

  it("are named in a fault, without their value", async () => {
    write("encryption.key", "planted\n");
    const expected = "expected 32 bytes as 64 hexadecimal digits (openssl rand -hex 32)";
    assert.equal(await faults("", environment), `credential encryption.key: encryption.key: ${expected}`);
    write("encryption.key", key);
  });

  it("of other programs are not read", async () => {
    const other = join(directory, "disk.img");
    writeFileSync(other, "");
    // More than the longest string of V8.
    truncateSync(other, 513 * 1024 ** 2);
    try {
      assert.equal((await load("", environment)).config.encryption.key?.reveal(), key);
    } finally {
      rmSync(other);
    }
  });

  it("that are empty are not set", async () => {
    write("data_dir", "\n");
    assert.equal((await load("data_dir: here\n", environment)).config.data_dir, "here");
    write("data_dir", "there");
    assert.equal((await load("data_dir: here\n", environment)).config.data_dir, "there");
    rmSync(join(directory, "data_dir"));
  });

  it("are found behind links, and named where they cannot be read", async () => {
    rmSync(join(directory, "admins"));
    writeFileSync(join(folder, "linked"), "dora");
    symlinkSync(join(folder, "linked"), join(directory, "admins"));
    assert.deepEqual((await load("", environment)).config.admins, ["dora"]);
    rmSync(join(folder, "linked"));
    assert.equal(await faults("", environment), "credentials/admins: no such file");
    // A variable wins, so the credential is not needed.
    assert.deepEqual((await load("", { ...environment, SVC_ADMINS: "eve" })).config.admins, ["eve"]);
    rmSync(join(directory, "admins"));
  });

  it("stop the start where their folder cannot be read", async () => {
    const missing = { CREDENTIALS_DIRECTORY: join(folder, "none") };
    assert.equal(await faults("", missing), "none: no such file");
  });
});
