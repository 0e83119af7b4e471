import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs, { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import isomorphicGit from "isomorphic-git";
import http from "isomorphic-git/http/node";
import {
  EMPTY_FETCH,
  encodeCommandRequest,
  encodeFetchRequest,
  UPLOAD_PACK_REQUEST,
} from "@devplat/git-protocol";
import { git } from "@devplat/testkit";
import { buildRepository, git as gitSync, temporaryFolder } from "../../test/git.test-kit.ts";
import type { GitStoreError } from "../errors.ts";
import { Repository } from "../repository/repository.ts";
import { refsOf, serve, tryGit } from "../../test/push.test-kit.ts";
import { createGitHandler } from "./http.ts";

const README = new URL("../../README.md", import.meta.url);
const CREDENTIAL = `Basic ${Buffer.from("ada:right").toString("base64")}`;

for (const format of ["sha1", "sha256"] as const) {
  describe(`createGitHandler, ${format}, with stock git`, () => {
    const folder = temporaryFolder();
    const source = buildRepository(folder.path, format);
    let repository: Repository;
    let server: Awaited<ReturnType<typeof serve>>;
    before(async () => {
      repository = await Repository.open(source);
      server = await serve({ repository: (path) => (path === "team/demo" ? repository : undefined) });
    });
    after(async () => {
      await server.stop();
      repository.close();
      folder[Symbol.dispose]();
    });
    const url = (): string => `${server.url}/team/demo`;

    it("serves a clone with all refs, which fsck passes", async () => {
      const clone = join(folder.path, "clone.git");
      await git(["clone", "-q", "--mirror", `${url()}.git`, clone]);
      assert.equal(await refsOf(clone), await refsOf(source));
      await git(["-C", clone, "fsck", "--full", "--strict"]);
      assert.equal(await git(["-C", clone, "symbolic-ref", "HEAD"]), "refs/heads/main");
    });

    for (const version of [0, 1, 2]) {
      it(`serves clients of protocol v${version}: clones, changes and depths`, async () => {
        const old = async (...args: string[]): Promise<string> =>
          git(["-c", `protocol.version=${version}`, ...args]);
        const clone = join(folder.path, `v${version}.git`);
        await old("clone", "-q", "--mirror", url(), clone);
        assert.equal(await refsOf(clone), await refsOf(source));
        await git(["-C", clone, "fsck", "--full", "--strict"]);
        // A client with old commits and with commits of its own asks in several rounds.
        const behind = join(folder.path, `behind-v${version}`);
        await old("clone", "-q", "--single-branch", "-b", "light", url(), behind);
        for (let index = 0; index < 40; index++) {
          await git(["-C", behind, "commit", "-q", "--allow-empty", "-m", String(index)]);
        }
        await old("-C", behind, "fetch", "-q", "origin", "main");
        assert.equal(
          await git(["-C", behind, "rev-parse", "FETCH_HEAD"]),
          await git(["-C", source, "rev-parse", "main"]),
        );
        await git(["-C", behind, "fsck", "--full", "--strict"]);
        const shallow = join(folder.path, `shallow-v${version}`);
        await old("clone", "-q", "--depth=3", url(), shallow);
        const depth = await git(["-C", shallow, "rev-list", "--first-parent", "--count", "HEAD"]);
        assert.equal(depth, "3");
        await old("-C", shallow, "fetch", "-q", "--unshallow");
        assert.equal(
          await git(["-C", shallow, "rev-list", "--count", "HEAD"]),
          await git(["-C", source, "rev-list", "--count", "main"]),
        );
        assert.equal(await git(["-C", shallow, "rev-parse", "--is-shallow-repository"]), "false");
      });
    }

    it("serves shallow and partial clones, and what they fetch later", async () => {
      const shallow = join(folder.path, "shallow");
      await git(["clone", "-q", "--depth=1", url(), shallow]);
      assert.equal(await git(["-C", shallow, "rev-list", "--count", "HEAD"]), "1");
      await git(["-C", shallow, "fetch", "-q", "--unshallow"]);
      assert.equal(
        await git(["-C", shallow, "rev-list", "--count", "HEAD"]),
        await git(["-C", source, "rev-list", "--count", "main"]),
      );
      const partial = join(folder.path, "partial");
      // The check-out fetches the blobs of its commit by their ids.
      await git(["clone", "-q", "--filter=blob:none", url(), partial]);
      assert.equal(await git(["-C", partial, "status", "--porcelain"]), "");
      await git(["-C", partial, "fsck"]);
    });

    it("serves what another program has written since, loose or packed", async () => {
      const clone = join(folder.path, "later.git");
      await git(["clone", "-q", "--bare", url(), clone]);
      const tree = gitSync(source, ["rev-parse", "main^{tree}"]).toString().trim();
      const commit = gitSync(source, ["commit-tree", "-m", "more", "-p", "main", tree]).toString().trim();
      gitSync(source, ["update-ref", "refs/heads/more", commit]);
      assert.match(await git(["ls-remote", url(), "more"]), new RegExp(`^${commit}\\trefs/heads/more$`));
      await git(["-C", clone, "fetch", "-q", url(), "more:loose"]);
      assert.equal(await git(["-C", clone, "rev-parse", "loose"]), commit);
      gitSync(source, ["repack", "-adq"]);
      await git(["-C", clone, "fetch", "-q", url(), "more:more"]);
      assert.equal(await git(["-C", clone, "rev-parse", "more"]), commit);
      await git(["-C", clone, "fsck", "--full", "--strict"]);
      gitSync(source, ["update-ref", "-d", "refs/heads/more"]);
      const other = join(folder.path, "other");
      gitSync(folder.path, ["init", "-q", `--object-format=${format}`, other]);
      const hidden = await tryGit(["-C", other, "fetch", url(), commit]);
      assert.equal(hidden.code, 128);
      assert.match(hidden.stderr, new RegExp(`not our ref ${commit}`));
    });

    it("serves an empty repository, whose branch is not born", async () => {
      const empty = await Repository.init(join(folder.path, "empty.git"), {
        format,
        head: "refs/heads/first",
      });
      const other = await serve({ repository: () => empty });
      try {
        const clone = join(folder.path, "empty-clone");
        await git(["clone", "-q", `${other.url}/empty`, clone]);
        assert.equal(await git(["-C", clone, "symbolic-ref", "HEAD"]), "refs/heads/first");
      } finally {
        await other.stop();
        empty.close();
      }
    });
  });
}

describe("createGitHandler", () => {
  const folder = temporaryFolder();
  const source = buildRepository(folder.path);
  let repository: Repository;
  const errors: unknown[] = [];
  let handler: (request: Request) => Promise<Response>;
  before(async () => {
    repository = await Repository.open(source);
    handler = createGitHandler({
      repository: (path) => (path === "demo" ? repository : undefined),
      maxRequestBytes: 100_000,
      onError: (error) => errors.push(error),
    });
  });
  after(() => {
    repository.close();
    folder[Symbol.dispose]();
  });
  const fetchAll = (): Buffer => {
    const oid = gitSync(source, ["rev-parse", "main"]).toString().trim();
    const request = { ...EMPTY_FETCH, wants: [oid], done: true, noProgress: true };
    return encodeCommandRequest(encodeFetchRequest(request, ["object-format=sha1"]));
  };
  const post = (body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Request =>
    new Request("http://host/demo/git-upload-pack", {
      method: "POST",
      body,
      headers: { "content-type": UPLOAD_PACK_REQUEST, "git-protocol": "version=2", ...headers },
    });
  const advertised = (path: string, init: RequestInit = {}): Request =>
    new Request(`http://host/${path}`, { headers: { "git-protocol": "version=2" }, ...init });

  it("refuses what is not for it, with a status and a text", async () => {
    const rows: [string, Request, number, RegExp][] = [
      ["another address", advertised("demo/other"), 404, /not an address/],
      [
        "an unknown repository",
        advertised("none/info/refs?service=git-upload-pack"),
        404,
        /no such repository/,
      ],
      ["the dumb protocol", advertised("demo/info/refs"), 403, /smart HTTP/],
      ["a push", advertised("demo/info/refs?service=git-receive-pack"), 403, /pushes are not served/],
      [
        "an encoded way up",
        advertised("a%2f..%2fdemo/info/refs?service=git-upload-pack"),
        404,
        /not an address/,
      ],
      ["a malformed escape", advertised("%ff/info/refs?service=git-upload-pack"), 404, /not an address/],
      ["a wrong method", advertised("demo/git-upload-pack"), 405, /use POST/],
      [
        "a wrong type",
        post(fetchAll() as Buffer<ArrayBuffer>, { "content-type": "text/plain" }),
        415,
        /the body must be/,
      ],
      ["another compression", post(Buffer.from("x"), { "content-encoding": "br" }), 415, /with gzip/],
      [
        "a body that does not inflate",
        post(Buffer.from("x"), { "content-encoding": "gzip" }),
        400,
        /does not inflate/,
      ],
      ["a large body", post(Buffer.alloc(100_001)), 413, /more than 100000 bytes/],
      [
        "a bomb",
        post(gzipSync(Buffer.alloc(2 ** 24)), { "content-encoding": "gzip" }),
        413,
        /more than 100000 bytes/,
      ],
      ["a malformed body", post(Buffer.from("zzzz")), 400, /./],
      ["half a body", post(fetchAll().subarray(0, 30) as Buffer<ArrayBuffer>), 400, /ends before/],
    ];
    for (const [what, request, status, text] of rows) {
      const response = await handler(request);
      assert.equal(response.status, status, what);
      assert.match(await response.text(), text, what);
    }
    assert.deepEqual(errors, []);
  });

  it("reads a body that is compressed, and responds with the same pack", async () => {
    const plain = await (await handler(post(fetchAll() as Buffer<ArrayBuffer>))).bytes();
    const compressed = await handler(post(gzipSync(fetchAll()), { "content-encoding": "gzip" }));
    assert.deepEqual(await compressed.bytes(), plain);
    assert.ok(plain.length > 10_000);
  });

  it("answers git's probe and unknown commands", async () => {
    assert.equal(await (await handler(post(Buffer.from("0000")))).text(), "");
    const command = encodeCommandRequest({ command: "no-such", capabilities: [], args: [] });
    assert.match(
      await (await handler(post(command as Buffer<ArrayBuffer>))).text(),
      /^....ERR .*"no-such" is not known/,
    );
  });

  it("asks `authorize` first, and sends its response", async () => {
    const server = await serve({
      repository: () => repository,
      authorize: (request, access) => {
        assert.deepEqual(access, { repository: "demo", service: "git-upload-pack" });
        if (request.headers.get("authorization") === CREDENTIAL) return undefined;
        return new Response("no\n", { status: 401, headers: { "www-authenticate": 'Basic realm="git"' } });
      },
    });
    try {
      const host = server.url.slice("http://".length);
      const refused = await tryGit(["ls-remote", `http://ada:wrong@${host}/demo`]);
      assert.match(refused.stderr, /Authentication failed/);
      assert.match(await git(["ls-remote", `http://ada:right@${host}/demo`, "HEAD"]), /\tHEAD$/);
    } finally {
      await server.stop();
    }
  });

  it("warns of errors of the server without `onError`", async (t) => {
    const printed = t.mock.method(process, "emitWarning", () => undefined);
    const fault = new Error("the disk is gone");
    const asked = createGitHandler({ repository: () => Promise.reject(fault) });
    const response = await asked(new Request("http://host/demo/info/refs?service=git-upload-pack"));
    assert.deepEqual([response.status, await response.text()], [500, "the repository could not be read\n"]);
    assert.equal(printed.mock.calls[0]?.arguments[0], fault);
  });

  it("tells the client and `onError` of a repository that it cannot read", async () => {
    using copy = temporaryFolder();
    gitSync(copy.path, ["clone", "-q", "--bare", source, "damaged.git"]);
    const damaged = await Repository.open(join(copy.path, "damaged.git"));
    const seen: unknown[] = [];
    const asked = createGitHandler({ repository: () => damaged, onError: (error) => seen.push(error) });
    for (const end of ["pack", "idx"]) {
      writeFileSync(join(damaged.path, "objects/pack", `pack-${"0".repeat(40)}.${end}`), "damaged");
    }
    const response = await asked(post(fetchAll() as Buffer<ArrayBuffer>));
    assert.match(await response.text(), /^....ERR upload-pack: the repository could not be read\n$/);
    assert.equal((seen[0] as GitStoreError).code, "corrupt_index");
    writeFileSync(join(damaged.path, "packed-refs"), "damaged\n");
    assert.equal((await asked(post(fetchAll() as Buffer<ArrayBuffer>))).status, 500);
    assert.equal((seen[1] as GitStoreError).code, "corrupt_repository");
    damaged.close();
  });

  it("stops its work when the client goes away", async () => {
    const response = await handler(post(fetchAll() as Buffer<ArrayBuffer>));
    const reader = response.body!.getReader();
    assert.equal((await reader.read()).done, false);
    await reader.cancel();
    assert.deepEqual(errors, []);
    assert.ok((await (await handler(post(fetchAll() as Buffer<ArrayBuffer>))).bytes()).length > 10_000);
  });
});

describe("createGitHandler, with isomorphic-git", () => {
  it("serves a clone, which stock git finds complete", async () => {
    using folder = temporaryFolder();
    const repository = await Repository.open(buildRepository(folder.path));
    const server = await serve({ repository: () => repository });
    try {
      const dir = join(folder.path, "clone");
      await isomorphicGit.clone({ fs, http, dir, url: `${server.url}/demo.git` });
      assert.equal(await git(["-C", dir, "status", "--porcelain"]), "");
      await git(["-C", dir, "fsck", "--full", "--strict"]);
      assert.equal(
        await git(["-C", dir, "rev-parse", "HEAD"]),
        gitSync(repository.path, ["rev-parse", "main"]).toString().trim(),
      );
    } finally {
      await server.stop();
      repository.close();
    }
  });
});

describe("README", () => {
  /** Runs a program of the README in a folder, with a free port. @returns its address */
  async function withProgram(
    number: number,
    folder: string,
    use: (url: string) => Promise<void>,
  ): Promise<void> {
    const [, program = ""] = [...readFileSync(README, "utf8").matchAll(/^```js\n(.*?)^```$/gms)][number]!;
    const resolved = program
      .replaceAll(/"(@devplat\/[^"]+)"/g, (_, name: string) => JSON.stringify(import.meta.resolve(name)))
      .replace("8080,", "0,")
      .replace(/"git [a-z]+ http:[^"]+"/, "server.address().port");
    assert.notEqual(resolved, program);
    writeFileSync(join(folder, "serve.mjs"), resolved);
    const child = spawn(process.execPath, ["serve.mjs"], {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [line] = (await once(child.stdout, "data")) as [Buffer];
      await use(`http://127.0.0.1:${line.toString().trim()}`);
    } finally {
      child.kill();
      await once(child, "exit");
    }
  }

  it("serves a repository by its program", async () => {
    using folder = temporaryFolder();
    gitSync(folder.path, ["clone", "-q", "--bare", buildRepository(folder.path), "demo.git"]);
    await withProgram(0, folder.path, async (url) => {
      const clone = join(folder.path, "copy");
      await git(["clone", "-q", `${url}/demo.git`, clone]);
      assert.equal(await git(["-C", clone, "fsck", "--full", "--strict"]), "");
    });
  });

  it("takes pushes by its program, also of isomorphic-git, and serves them", async () => {
    using folder = temporaryFolder();
    const source = buildRepository(folder.path);
    await withProgram(1, folder.path, async (url) => {
      const pushed = await tryGit(["-C", source, "push", `${url}/project.git`, "main"]);
      assert.match(pushed.stderr, /remote: 1 refs changed/);
      const refused = await tryGit(["-C", source, "push", `${url}/project.git`, "v1"]);
      assert.match(refused.stderr, /only branches, please/);
      const dir = join(folder.path, "copy");
      await isomorphicGit.clone({ fs, http, dir, url: `${url}/project.git` });
      const author = { name: "A", email: "a@example.org" };
      const oid = await isomorphicGit.commit({ fs, dir, message: "more", author });
      const result = await isomorphicGit.push({ fs, http, dir, remote: "origin", ref: "main" });
      assert.equal(result.ok, true);
      assert.equal(await git(["-C", join(folder.path, "project.git"), "rev-parse", "main"]), oid);
      await git(["-C", join(folder.path, "project.git"), "fsck", "--full", "--strict"]);
    });
  });
});
