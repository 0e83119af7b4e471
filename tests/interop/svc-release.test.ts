import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  startVault,
  tempFolder,
  type CodeHost,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import manifest from "../../apps/svc/package.json" with { type: "json" };
import { buildProgram } from "../../tools/build/single/program.ts";
import { buildSvc } from "../../tools/build/svc.ts";

/** Modules of Node that would cost CPU and memory at each start, and serve pages, TLS or nothing here. */
const NOT_LOADED = ["internal/deps/undici/undici", "http2", "https", "tls", "assert"];

const FORMS = [
  ["the bundle with its launcher", buildSvc],
  ["the single executable", async (folder: string) => buildProgram("svc", folder, manifest.version)],
] as const;

for (const [form, build] of FORMS)
  describe(`the release of svc: ${form}`, { timeout: 240_000 }, () => {
    let folder: TempFolder;
    let codeHost: CodeHost;
    let program: string;
    let svc: Svc;
    let session: string;
    const env = { ...process.env, SVC_NODE: process.execPath };
    const json = { "Content-Type": "application/json" };

    before(async () => {
      folder = await tempFolder("svc-release");
      program = await build(join(folder.path, "release"));
      codeHost = await startCodeHost();
      codeHost.addUser("ada", "host-token");
      await codeHost.addRepository("org", "r", { build: repositories.merges });
      svc = await startSvc({
        codeHost,
        program,
        // Nothing is to be waited for: the threads are to be seen at work.
        env: {
          SVC_NODE: process.execPath,
          SVC_DEV_HOST_TOKEN: "host-token",
          SVC_CACHE_REPACK_IDLE_SECONDS: "0",
        },
      });
      session = await svc.signIn();
    });
    after(async () => {
      assert.equal(await svc.stop(), 0);
      await codeHost.stop();
      await folder.remove();
    });

    it("says its version, and errors as of the sources", async () => {
      const version = await run(program, ["version"], { env });
      assert.deepEqual([version.code, version.stdout], [0, `${manifest.version}\n`]);
      const wrong = await run(program, ["--config", "/nowhere", "config", "check"], { env });
      assert.deepEqual(
        [wrong.code, wrong.stderr],
        [2, "svc: /nowhere: no such file\nCheck the path after --config.\n"],
      );
      if (form === "the single executable") return;
      const old = await run(program, ["version"], { env: { ...env, SVC_NODE: "/nowhere/node" } });
      assert.match(old.stderr, /needs Node 26/);
    });

    // A single executable runs no --import, and is made with the same plug-ins.
    const itInBundle = form === "the single executable" ? (): void => {} : it;
    void itInBundle(
      "starts without the parts of Node that a service on plain HTTP does not use",
      async () => {
        const file = join(folder.path, "loaded");
        const hook = `process.on("exit", () => process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(file)}, process.moduleLoadList.join("\\n")))`;
        const other = await startSvc({
          codeHost,
          program,
          untilListening: true,
          env: {
            SVC_NODE: process.execPath,
            NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}`,
          },
        });
        // Connections to the code host are loaded by the first request.
        const refs = await fetch(`${other.url}/org/r/info/refs?service=git-upload-pack`);
        assert.equal(refs.status, 200, await refs.text());
        assert.equal(await other.stop(), 0);
        const loaded = new Set((await readFile(file, "utf8")).split("\n"));
        assert.ok(
          loaded.has("NativeModule sqlite") && loaded.has("NativeModule _http_server"),
          "modules are seen",
        );
        assert.deepEqual(
          NOT_LOADED.filter((name) => loaded.has(`NativeModule ${name}`)),
          [],
        );
      },
    );

    it("serves clones from its cache, with a store that its own threads fill", async () => {
      const headers = { ...json, Authorization: `Bearer ${session}` };
      const body = JSON.stringify({ owner: "org", name: "r" });
      const added = await fetch(`${svc.url}/api/cached-repos`, { method: "POST", headers, body });
      assert.equal(added.status, 201);
      const { id } = (await added.json()) as { id: string };
      for (const name of ["cold", "warm"]) {
        const path = join(folder.path, name);
        const cloned = await run("git", ["clone", "-q", "--mirror", `${svc.url}/org/r`, path], {
          env: gitEnvironment(),
        });
        assert.equal(cloned.code, 0, cloned.stderr);
        const checked = await run("git", ["-C", path, "fsck", "--full"], { env: gitEnvironment() });
        assert.equal(checked.code, 0, checked.stderr);
      }
      for (;;) {
        const shown = await fetch(`${svc.url}/api/cached-repos/${id}`, { headers });
        const { stats } = (await shown.json()) as {
          stats: { packs: number; hits: number; last_error: unknown };
        };
        assert.equal(stats.last_error, null);
        if (stats.packs > 0 && stats.hits === 1) break;
      }
    });

    it("authorizes REST and GraphQL by its tables", async () => {
      const headers = { ...json, Authorization: `Bearer ${session}` };
      const explain = async (question: object): Promise<boolean> => {
        const answer = await fetch(`${svc.url}/api/scopes/explain`, {
          method: "POST",
          headers,
          body: JSON.stringify({ scopes: "issues:read", repositories: ["org/r"], ...question }),
        });
        return ((await answer.json()) as { allowed: boolean }).allowed;
      };
      assert.equal(await explain({ method: "GET", url: "/repos/org/r/issues" }), true);
      assert.equal(await explain({ method: "POST", url: "/repos/org/r/issues" }), false);
      const graphql = '{ repository(owner: "org", name: "r") { issues(first: 1) { nodes { title } } } }';
      assert.equal(await explain({ graphql }), true);
    });

    it("asks the code host on its own behalf: before it makes a token, and for doctor", async () => {
      const made = await fetch(`${svc.url}/api/tokens`, {
        method: "POST",
        headers: { ...json, Authorization: `Bearer ${session}` },
        body: JSON.stringify({ repository: "org/r", scopes: "contents:read", duration: "1h" }),
      });
      assert.equal(made.status, 201, await made.text());
      const settings = {
        SVC_HOST_URL: codeHost.url,
        SVC_HOST_API_URL: codeHost.apiUrl,
        SVC_DEV_MODE: "true",
      };
      const doctor = await run(program, ["doctor", "--json"], {
        cwd: folder.path,
        env: { ...env, ...settings, SVC_DATA_DIR: svc.dataDir },
      });
      const { findings } = JSON.parse(doctor.stdout) as { findings: { check: string; state: string }[] };
      const asked = findings.filter(({ check }) => check.startsWith("code host"));
      assert.equal(asked.length, 2);
      assert.ok(!asked.some(({ state }) => state === "fault"), doctor.stdout);
    });

    it("keeps its records in Vault", async () => {
      const vault = await startVault();
      const settings = {
        SVC_DATABASE_DRIVER: "vault",
        SVC_DATABASE_DSN: vault.address,
        SVC_VAULT_TOKEN: vault.rootToken,
      };
      const migrated = await run(program, ["migrate"], {
        cwd: folder.path,
        env: { ...env, ...settings },
      });
      await vault.stop();
      assert.equal(migrated.code, 0, migrated.stderr);
    });

    it("its pages have all they load", async () => {
      const page = await (await fetch(`${svc.url}/admin`)).text();
      const loaded = [...page.matchAll(/(?:href|src)="(\/static\/[^"]+)"/g)].map(([, path = ""]) => path);
      assert.ok(loaded.length >= 2);
      for (const path of loaded) assert.equal((await fetch(svc.url + path)).status, 200, path);
    });
  });
