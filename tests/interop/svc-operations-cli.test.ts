import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readdir, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  SVC_LAUNCHER,
  gitEnvironment,
  makeCertificate,
  newerGitFolder,
  repositories,
  run,
  startCodeHost,
  startSvc,
  tempFolder,
  type CodeHost,
  type Finished,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";

const HOST_TOKEN = "planted-host-token";

let codeHost: CodeHost;
let folder: TempFolder;
let svc: Svc;
let environment: NodeJS.ProcessEnv;

before(async () => {
  codeHost = await startCodeHost();
  folder = await tempFolder("svc-operations");
  codeHost.addUser("ada", HOST_TOKEN);
  for (const name of ["one", "two"]) {
    await codeHost.addRepository("org", name, { private: true, build: (dir) => repositories.linear(dir) });
  }
  svc = await startSvc({ codeHost, env: { SVC_DEV_HOST_TOKEN: HOST_TOKEN } });
  environment = {
    ...gitEnvironment(),
    HOME: folder.path,
    XDG_CACHE_HOME: join(folder.path, "cache"),
    SVC_URL: svc.url,
    SVC_TOKEN: await svc.signIn(),
  };
});
after(async () => {
  assert.equal(await svc.stop(), 0);
  await codeHost.stop();
  await folder.remove();
});

const command = (args: readonly string[], env: NodeJS.ProcessEnv = environment): Promise<Finished> =>
  run(SVC_LAUNCHER, args, { env, cwd: folder.path });

describe("svc git-credential", () => {
  const helper = (...options: string[]): string[] => [
    "-c",
    `credential.helper=!'${SVC_LAUNCHER}' git-credential ${options.join(" ")}`,
    "-c",
    "credential.useHttpPath=true",
  ];
  const git = (args: readonly string[]): Promise<Finished> => run("git", args, { env: environment });
  /** Answer of the helper to what git writes to it. */
  const getCredential = (input: string): Promise<Finished> =>
    run(SVC_LAUNCHER, ["git-credential", "get"], { env: environment, input });
  const kept = join(".", "cache", "svc", "git-credential.json");

  it("stock git clones a private repository with its own token, and uses it again", async () => {
    for (const name of ["first", "second"]) {
      const cloned = await git([...helper(), "clone", "-q", `${svc.url}/org/one`, join(folder.path, name)]);
      assert.equal(cloned.code, 0, cloned.stderr);
    }
    const { stdout } = await command(["token", "list", "--json"]);
    const tokens = JSON.parse(stdout) as { repositories: string[]; scopes: Record<string, string> }[];
    assert.equal(tokens.length, 1);
    assert.deepEqual(tokens[0]?.repositories, ["org/one"]);
    assert.deepEqual(tokens[0]?.scopes, { contents: "read", metadata: "read" });
    assert.equal((await stat(join(folder.path, kept))).mode & 0o777, 0o600);
  });

  it("a token to read does not push; with --write one that does is minted", async () => {
    const clone = join(folder.path, "first");
    const push = (options: readonly string[]): Promise<Finished> =>
      git([...options, "-C", clone, "push", "-q", "origin", "HEAD:refs/heads/new"]);
    const refused = await push(helper());
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /lacks the scope contents:write/);
    const pushed = await push(helper("--write"));
    assert.equal(pushed.code, 0, pushed.stderr);
  });

  it("after a revocation git erases the token, and the next command mints another", async () => {
    const { stdout } = await command(["token", "list", "--json"]);
    for (const { id } of JSON.parse(stdout) as { id: string }[]) await command(["token", "revoke", id]);
    const refused = await git([...helper(), "ls-remote", `${svc.url}/org/one`]);
    assert.notEqual(refused.code, 0);
    const again = await git([...helper(), "ls-remote", `${svc.url}/org/one`]);
    assert.equal(again.code, 0, again.stderr);
  });

  it("answers a Bearer credential to git with the capability, otherwise a password", async () => {
    const about = `protocol=http\nhost=${new URL(svc.url).host}\npath=org/one\n`;
    const ask = async (input: string): Promise<string[]> => {
      const { code, stdout, stderr } = await getCredential(input);
      assert.deepEqual([code, stderr], [0, ""]);
      return stdout.trimEnd().split("\n");
    };
    const isLater = (line = ""): boolean => {
      const [, seconds] = /^password_expiry_utc=(\d+)$/.exec(line) ?? [];
      return Number(seconds) * 1000 > Date.now();
    };
    const [user, password = "", expiry, ...rest] = await ask(about);
    assert.deepEqual([user, rest], ["username=x-access-token", []]);
    assert.match(password, /^password=svcx_\w+$/);
    assert.ok(isLater(expiry), String(expiry));
    const token = password.slice("password=".length);
    // git 2.46 and later sends both; unknown capabilities are ignored.
    const modern = await ask(`capability[]=authtype\ncapability[]=state\n${about}`);
    assert.deepEqual(modern, [
      "capability[]=authtype",
      "authtype=Bearer",
      `credential=${token}`,
      "ephemeral=1",
      expiry,
    ]);
    for (const other of ["capability[]=state\n", "capability[]=authtype\ncapability[]=\n"]) {
      assert.equal((await ask(`${other}${about}`))[1], password, other);
    }
    const refs = await fetch(`${svc.url}/org/one/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(refs.status, 200);
    await refs.arrayBuffer();
  });

  it("stock git fills a credential with the capability where it can, and without", async () => {
    const about = `protocol=http\nhost=${new URL(svc.url).host}\npath=org/one\n\n`;
    const newer = join(newerGitFolder(), "bin/git");
    for (const program of ["git", newer]) {
      const fill = async (input: string): Promise<string> => {
        const filling = [...helper(), "credential", "fill"];
        const { code, stdout, stderr } = await run(program, filling, { env: environment, input });
        assert.equal(code, 0, stderr);
        return stdout;
      };
      assert.match(await fill(about), /^username=x-access-token\npassword=svcx_\w+$/m);
      const { stdout } = await run(program, ["--version"]);
      const [, minor = ""] = /^git version 2\.(\d+)/.exec(stdout) ?? [];
      // git before 2.46 does not know the line, and passes nothing on.
      const isModern = Number(minor) >= 46;
      const expected = isModern ? /^authtype=Bearer\ncredential=svcx_\w+$/m : /^password=svcx_\w+$/m;
      assert.match(await fill(`capability[]=authtype\n${about}`), expected);
      assert.ok(program === "git" || isModern, stdout);
    }
  });

  it("a newer git sends the Bearer credential of the helper, and clones with it", async () => {
    const target = join(environment["HOME"] ?? "", `bearer-${performance.now()}`);
    const args = [...helper(), "clone", "-q", "--bare", `${svc.url}/org/one`, target];
    const cloned = await run(join(newerGitFolder(), "bin/git"), args, {
      env: { ...environment, GIT_TRACE_CURL: "1", GIT_TRACE_REDACT: "0" },
    });
    assert.equal(cloned.code, 0, cloned.stderr);
    assert.match(cloned.stderr, /authorization: Bearer svcx_\w+/i);
    assert.doesNotMatch(cloned.stderr, /authorization: Basic/i);
  });

  it("prints nothing for another host, and says what to set without a repository", async () => {
    const other = await getCredential("protocol=https\nhost=code.example\npath=org/one\n");
    assert.deepEqual([other.code, other.stdout, other.stderr], [0, "", ""]);
    const pathless = await getCredential(`protocol=http\nhost=${new URL(svc.url).host}\n`);
    assert.equal(pathless.code, 2);
    assert.match(pathless.stderr, /useHttpPath true/);
    assert.equal(pathless.stdout, "");
  });
});

describe("svc repo import", () => {
  it("adds, changes and keeps records as the file says, and may be repeated", async () => {
    const file = join(folder.path, "repositories.txt");
    await writeFile(file, "# ours\norg/one\norg/two timeout=600 limit=2000 # big\r\n\nORG/one timeout=60\n");
    const first = await command(["repo", "import", file]);
    assert.equal(first.stdout, "added org/one\nadded org/two\nchanged ORG/one\n");
    await writeFile(file, "org/one timeout=90\norg/two timeout=600\n");
    const second = await command(["repo", "import", file, "--json"]);
    assert.equal(second.code, 0, second.stderr);
    assert.deepEqual(JSON.parse(second.stdout), [
      { repository: "org/one", outcome: "changed" },
      { repository: "org/two", outcome: "unchanged" },
    ]);
  });

  it("a faulty file has no effect, and its line is named", async () => {
    const file = join(folder.path, "faulty.txt");
    for (const [content, message] of [
      ["org/three\nnonsense\n", /line 2: expected <owner>\/<repo>/],
      ["org/three\norg/four timeout=soon\n", /line 2: expected timeout=SECONDS or limit=MB/],
    ] as const) {
      await writeFile(file, content);
      const { code, stderr } = await command(["repo", "import", file]);
      assert.equal(code, 2);
      assert.match(stderr, message);
    }
    const { stdout } = await command(["repo", "list"]);
    assert.doesNotMatch(stdout, /org\/three/);
  });
});

describe("svc doctor", () => {
  interface Report {
    readonly findings: readonly { readonly check: string; readonly state: string; readonly detail: string }[];
  }
  const doctor = async (env: NodeJS.ProcessEnv): Promise<{ code: number; report: Report }> => {
    const { code, stdout } = await command(["doctor", "--json"], {
      PATH: process.env["PATH"],
      HOME: folder.path,
      ...env,
    });
    return { code, report: JSON.parse(stdout) as Report };
  };
  const stateOf = ({ findings }: Report, check: string): string | undefined =>
    findings.find((finding) => finding.check.startsWith(check))?.state;

  it("finds no fault in a service that runs", async () => {
    const { code, report } = await doctor({
      SVC_DEV_MODE: "true",
      SVC_DATA_DIR: svc.dataDir,
      SVC_SERVER_LISTEN: new URL(svc.url).host,
      SVC_CACHE_ENABLED: "true",
      SVC_HOST_URL: codeHost.url,
      SVC_HOST_API_URL: codeHost.apiUrl,
    });
    assert.equal(code, 0, JSON.stringify(report));
    for (const check of ["configuration", "database", "cache folder", "code host", "service"]) {
      assert.equal(stateOf(report, check), "ok", check);
    }
  });

  it("trusts the code host as the service does, by host.ca_file", async () => {
    const { key, cert, certFile } = await makeCertificate(folder.path, ["DNS:localhost"]);
    const server = createServer({ key, cert }, (_request, response) => void response.end("{}"));
    await once(server.listen(0, "localhost"), "listening");
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    const settings = { SVC_DEV_MODE: "true", SVC_HOST_URL: url, SVC_HOST_API_URL: url };
    const trusting = await doctor({ ...settings, SVC_HOST_CA_FILE: certFile });
    const doubtful = await doctor(settings);
    server.close();
    for (const check of ["code host", "code host API"]) {
      assert.equal(stateOf(trusting.report, check), "ok", check);
      assert.equal(stateOf(doubtful.report, check), "fault", check);
    }
  });

  it("tells that the encryption key is not the one of the database", async () => {
    const settings = { SVC_DATA_DIR: svc.dataDir, SVC_ENCRYPTION_KEY: "0123456789abcdef".repeat(4) };
    const { report } = await doctor(settings);
    const found = report.findings.find(({ check }) => check.startsWith("database"));
    assert.equal(found?.state, "fault");
    assert.match(found.detail, /encrypted with another key .*SVC_ENCRYPTION_KEY_PREVIOUS/);
  });

  it("names each fault, creates nothing, and shows no secret", async () => {
    const dataDir = join(folder.path, "nowhere");
    const { code, report } = await doctor({
      SVC_DATA_DIR: dataDir,
      SVC_HOST_URL: "http://127.0.0.1:1",
      SVC_HOST_API_URL: "http://127.0.0.1:1",
      SVC_HOST_CLIENT_SECRET: "planted-client-secret",
      SVC_SERVER_LISTEN: "127.0.0.1:1",
    });
    assert.equal(code, 1);
    for (const check of ["encryption key", "database", "code host"])
      assert.equal(stateOf(report, check), "fault", check);
    for (const check of ["login", "service"]) assert.equal(stateOf(report, check), "warning", check);
    assert.doesNotMatch(JSON.stringify(report), /planted/);
    await assert.rejects(stat(dataDir), { code: "ENOENT" });
  });

  it("a cache folder that cannot be made is a fault, also for the superuser", async () => {
    const file = join(folder.path, "a-file");
    await writeFile(file, "");
    for (const [path, reason] of [
      ["/proc/svc-cache", /^\/proc\/svc-cache cannot be made \(\w+\)$/],
      [join(file, "cache"), /a-file is not a folder$/],
    ] as const) {
      const { code, report } = await doctor({
        SVC_DEV_MODE: "true",
        SVC_CACHE_ENABLED: "true",
        SVC_DATA_DIR: svc.dataDir,
        SVC_CACHE_STORAGE_PATH: path,
      });
      assert.equal(code, 1);
      const found = report.findings.find(({ check }) => check === "cache folder");
      assert.equal(found?.state, "fault");
      assert.match(found.detail, reason);
    }
  });

  it("leaves nothing in the folders that it tried", async () => {
    const cache = await mkdtemp(join(folder.path, "cache-"));
    const settings = { SVC_DEV_MODE: "true", SVC_CACHE_ENABLED: "true", SVC_CACHE_STORAGE_PATH: cache };
    const { report } = await doctor({ ...settings, SVC_DATA_DIR: svc.dataDir });
    assert.equal(stateOf(report, "cache folder"), "ok");
    assert.deepEqual(await readdir(cache), []);
  });

  it("finds settings of the bucket that no start takes, as config check does", async () => {
    const settings = {
      PATH: process.env["PATH"],
      SVC_ENCRYPTION_KEY: "0123456789abcdef".repeat(4),
      SVC_CACHE_ENABLED: "true",
      SVC_CACHE_OBJECT_BUCKET: "bucket",
      SVC_CACHE_OBJECT_ENDPOINT: "http://127.0.0.1:9",
    };
    for (const [change, reason] of [
      [{ SVC_CACHE_OBJECT_ENDPOINT: "https://s3.example.com/bucket" }, /object_endpoint: .*without a path/],
      [{ SVC_CACHE_OBJECT_REGION: "eu central" }, /as the region of the object store/],
      [{ SVC_CACHE_OBJECT_PATH_STYLE: "false" }, /a host name, because the bucket is put in front of it/],
      [{ SVC_CACHE_STORAGE_PATH: "a//b" }, /cache.storage_path: /],
    ] as const) {
      const { code, stderr } = await command(["config", "check"], { ...settings, ...change });
      assert.equal(code, 2, stderr);
      assert.match(stderr, reason);
      const { report } = await doctor({ ...settings, ...change });
      assert.equal(stateOf(report, "configuration"), "fault");
    }
    assert.equal((await command(["config", "check"], settings)).code, 0);
  });
});
