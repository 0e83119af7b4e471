/** The npm packages of the git engine, in an empty project: compilers, runtimes and bundlers of the people who install them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readFile, readdir, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  consumerPrograms,
  git,
  repositories,
  run,
  tempFolder,
  type Finished,
  type TempFolder,
} from "@devplat/testkit";
import { readmeExamples } from "@devplat/testkit/readme-examples";
import { writeTarballs } from "../../tools/release/tarballs.ts";

const OWN_MODULES = resolve(import.meta.dirname, "../../node_modules");
/** Registry that nobody serves, so that each request to it fails. */
const NO_REGISTRY = "http://127.0.0.1:9/";
const PACKAGES = ["git-protocol", "git-store"] as const;
/** Runs all examples in one process and one folder, as each process costs a start. */
const ALL_EXAMPLES = "all.js";

describe("npm packages of the git engine", () => {
  const programs = consumerPrograms();
  const tsc = {
    own: join(OWN_MODULES, "typescript/bin/tsc"),
    older: join(programs.modules, "typescript/bin/tsc"),
  };
  let folder: TempFolder;
  /** Project with both packages, and nothing else but the types of Node. */
  let project: string;
  let tarballs: string[];
  /** Names of the examples' files, without the ending. */
  let examples: string[];

  before(async () => {
    folder = await tempFolder("packages");
    const names = await writeTarballs(folder.path, 0);
    tarballs = names.map((name) => join(folder.path, name));
    project = await emptyProject("project");
    await npmInstall(project, tarballs);
    await useTypes(join(programs.modules, "@types/node"));
    examples = await writeExamples();
    await compiled(tsc.own, "nodenext");
    const imports = examples.map((name) => `await import("./${name}.js");`);
    await writeFile(join(project, "js", ALL_EXAMPLES), imports.join("\n"));
    await makeRepository(join(folder.path, "repository"));
  });

  after(async () => folder.remove());

  async function emptyProject(name: string): Promise<string> {
    const path = join(folder.path, name);
    await mkdir(path);
    await writeFile(join(path, "package.json"), '{ "private": true, "type": "module" }');
    return path;
  }

  async function npmInstall(cwd: string, files: readonly string[]): Promise<void> {
    const args = ["install", "--offline", "--registry", NO_REGISTRY, "--no-audit", "--no-fund", ...files];
    assertDone(await run("npm", args, { cwd }));
  }

  async function useTypes(types: string): Promise<void> {
    await mkdir(join(project, "node_modules/@types"), { recursive: true });
    await symlink(types, join(project, "node_modules/@types/node"));
  }

  /** Writes the examples of the READMEs that the packages brought. */
  async function writeExamples(): Promise<string[]> {
    const names: string[] = [];
    for (const name of PACKAGES) {
      const readme = await readFile(join(project, "node_modules/@devplat", name, "README.md"), "utf8");
      for (const [at, example] of readmeExamples(readme).entries()) {
        names.push(`${name}-${at}`);
        await writeFile(join(project, `${name}-${at}.ts`), `${example}export {};\n`);
      }
    }
    assert.ok(names.length > PACKAGES.length);
    return names;
  }

  /** Compiles the examples into `js`, with the declarations of the packages checked, too. */
  async function compiled(
    compiler: string,
    module: "nodenext" | "bundler",
    ...more: string[]
  ): Promise<void> {
    const [kind, resolution] = module === "nodenext" ? [module, module] : ["esnext", module];
    const settings = ["--module", kind, "--moduleResolution", resolution, "--target", "es2022"];
    const strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"];
    const library = ["--lib", "es2023", "--skipLibCheck", "false"];
    const files = examples.map((name) => `${name}.ts`);
    const args = [compiler, ...settings, ...strict, ...library, "--outDir", "js", ...more, ...files];
    assertDone(await run(process.execPath, args, { cwd: project }));
  }

  /** Repository and files that the examples of git-store read. */
  async function makeRepository(path: string): Promise<void> {
    await mkdir(path);
    await repositories.linear(join(path, "sha1.git"), { commits: 30 });
    const args = ["pack-objects", "--stdout", "--revs", "-q"];
    const cwd = join(path, "sha1.git");
    const { stdoutBytes } = await run("git", args, { cwd, input: "main\n" });
    await writeFile(join(path, "clone.pack"), stdoutBytes);
    await writeFile(join(path, "tip"), await git(["rev-parse", "main"], { cwd }));
  }

  /** Runs a program in a new copy of the repository. @returns its output */
  async function inRepository(name: string, program: string, args: readonly string[]): Promise<string> {
    const cwd = join(folder.path, name);
    await cp(join(folder.path, "repository"), cwd, { recursive: true });
    const stdout = assertDone(await run(program, args, { cwd }));
    await git(["fsck", "--strict"], { cwd: join(cwd, "copy.git") });
    return stdout;
  }

  it("hold code, types, source maps and documents, and no tests", async () => {
    for (const [at, name] of PACKAGES.entries()) {
      const root = join(project, "node_modules/@devplat", name);
      const paths = await readdir(root, { recursive: true });
      const files = paths.filter((path) => path.includes("."));
      const other = files.filter((path) => !/^dist\/.*(?:\.js|\.js\.map|\.d\.ts)$/.test(path));
      assert.deepEqual(other.toSorted(), ["API.md", "CHANGELOG.md", "README.md", "package.json"]);
      assert.ok(paths.includes("LICENSE"));
      assert.deepEqual(
        files.filter((path) => path.includes("test")),
        [],
      );
      for (const path of files.filter((each) => each.endsWith(".js"))) {
        assert.ok(paths.includes(`${path}.map`), path);
      }
      const { exports } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
        exports: Record<string, string | { types: string; default: string }>;
      };
      const entries = Object.values(exports).map((entry) =>
        typeof entry === "string" ? [entry] : [entry.types, entry.default],
      );
      assert.deepEqual(
        entries.flat().filter((path) => !paths.includes(path.replace("./", ""))),
        [],
      );
      const tarball = tarballs[at]?.split("/").at(-1) ?? assert.fail("no file");
      assert.ok((await readFile(join(root, "README.md"), "utf8")).includes(`npm install ./${tarball}`));
    }
  });

  it("install alone and together, and ask no registry for each other", async () => {
    for (const [at, tarball] of tarballs.entries()) {
      const alone = await emptyProject(`alone-${at}`);
      await npmInstall(alone, [tarball]);
      assert.deepEqual(await readdir(join(alone, "node_modules/@devplat")), [PACKAGES[at]]);
    }
    const bun = await emptyProject("bun");
    const env = { ...process.env, BUN_CONFIG_REGISTRY: NO_REGISTRY };
    assertDone(await run(programs.bun, ["add", ...tarballs], { cwd: bun, env }));
    assert.deepEqual((await readdir(join(bun, "node_modules/@devplat"))).toSorted(), [...PACKAGES]);
  });

  it("have types for TypeScript 7 with the resolution of a bundler", async () => {
    await assert.doesNotReject(compiled(tsc.own, "bundler", "--noEmit"));
  });

  it("have types for TypeScript 5.9 and for Deno", async () => {
    const files = examples.map((name) => `${name}.ts`);
    const [, deno] = await Promise.all([
      compiled(tsc.older, "nodenext", "--noEmit"),
      run(programs.deno, ["check", "--quiet", ...files], { cwd: project }),
    ]);
    assertDone(deno);
  });

  it("run every example on Node 22, Node 26, Bun and Deno with equal results", async () => {
    const all = join(project, "js", ALL_EXAMPLES);
    const outputs = await Promise.all([
      inRepository("on-node26", process.execPath, [all]),
      inRepository("on-node22", programs.node22, [all]),
      inRepository("on-bun", programs.bun, [all]),
      inRepository("on-deno", programs.deno, ["run", "--allow-all", "--quiet", all]),
    ]);
    const [node26] = outputs;
    assert.match(node26, /^fetch 1\ntrue 4\n\d+ objects, \d+ of them deltas[^]*\d+ bytes of a response\n/);
    assert.deepEqual(new Set(outputs), new Set([node26]));
  });

  describe("serve a repository to stock git", () => {
    const begin = `import { Repository } from "@devplat/git-store";
      import { createGitHandler, toNodeListener } from "@devplat/git-store/http";
      const demo = await Repository.open("sha1.git");
      const fetch = createGitHandler({ repository: (path) => (path === "demo" ? demo : undefined) });
      const listening = (port) => console.log("http://127.0.0.1:" + port + "/demo.git");
`;
    const at = `port: 0, hostname: "127.0.0.1"`;
    const node = `import { createServer } from "node:http";
const server = createServer(toNodeListener(fetch)).listen(0, "127.0.0.1", () => listening(server.address().port));`;
    const servers = {
      "Node 22": { program: programs.node22, args: [], code: node },
      Bun: { program: programs.bun, args: [], code: `listening(Bun.serve({ fetch, ${at} }).port);` },
      Deno: {
        program: programs.deno,
        args: ["run", "--allow-all", "--quiet"],
        code: `Deno.serve({ ${at}, onListen: ({ port }) => listening(port) }, fetch);`,
      },
      "Hono on Node 26": {
        program: process.execPath,
        args: [],
        code: `import { Hono } from "hono";
import { serve } from "@hono/node-server";
serve({ fetch: new Hono().all("*", (context) => fetch(context.req.raw)).fetch, ${at} }, ({ port }) => listening(port));`,
      },
    };

    before(async () => {
      await mkdir(join(project, "node_modules/@hono"), { recursive: true });
      for (const name of ["hono", "@hono/node-server"]) {
        await symlink(join(OWN_MODULES, name), join(project, "node_modules", name));
      }
    });

    for (const [name, { program, args, code }] of Object.entries(servers)) {
      it(`on ${name}, by protocol v0 and v2`, async () => {
        const file = join(project, `${name.replaceAll(" ", "-")}.mjs`);
        await writeFile(file, begin + code);
        const cwd = join(folder.path, "repository");
        const server = spawn(program, [...args, file], { cwd, stdio: ["ignore", "pipe", "inherit"] });
        const ended = once(server, "exit");
        try {
          const [line] = (await Promise.race([once(server.stdout, "data"), ended])) as [Buffer];
          const url = String(line).trim();
          assert.match(url, /^http:/);
          const refs = await git(["for-each-ref", "refs/heads"], { cwd: join(cwd, "sha1.git") });
          for (const version of [0, 2]) {
            const copy = join(folder.path, `${name}-${version}`);
            await git(["-c", `protocol.version=${version}`, "clone", "-q", "--mirror", url, copy]);
            await git(["fsck", "--full", "--strict"], { cwd: copy });
            assert.equal(await git(["for-each-ref", "refs/heads"], { cwd: copy }), refs);
          }
        } finally {
          server.kill();
          await ended;
        }
      });
    }
  });

  describe("bundled", () => {
    before(async () => {
      const readme = await readFile(join(project, "node_modules/@devplat/git-store/README.md"), "utf8");
      const [worker = "", main = "", indexing = ""] = readmeExamples(readme);
      const [pool] =
        /new IndexWorkers\(.+\)/.exec(main) ?? assert.fail("the README shows no pool for a bundle");
      await writeFile(join(project, "js/index-worker.js"), worker);
      const code = await readFile(join(project, "js/git-store-2.js"), "utf8");
      assert.ok(indexing.includes("new IndexWorkers()"));
      await writeFile(join(project, "js/main.js"), code.replace("new IndexWorkers()", pool));
    });

    const nodeResolve = join(programs.modules, "@rollup/plugin-node-resolve/dist/cjs/index.js");
    const bundlers = {
      esbuild: [
        join(OWN_MODULES, "esbuild/bin/esbuild"),
        "--bundle",
        "--platform=node",
        "--format=esm",
        "--outdir=OUT",
      ],
      rollup: [
        join(programs.modules, "rollup/dist/bin/rollup"),
        "--format=es",
        "--external=/^node:/",
        `--plugin=${nodeResolve}`,
        "--dir=OUT",
      ],
    };

    for (const [bundler, args] of Object.entries(bundlers)) {
      it(`by ${bundler}, index a pack in a thread on Node 22 and 26`, async () => {
        const out = join(folder.path, `by-${bundler}`);
        const [program = "", ...options] = args.map((arg) => arg.replace("OUT", out));
        const entries = ["js/main.js", "js/index-worker.js"];
        const bundling = await run(program, [...entries, ...options], { cwd: project });
        assertDone(bundling);
        // Warnings about the code of the packages name their files.
        assert.doesNotMatch(bundling.stderr, /node_modules/);
        await writeFile(join(out, "package.json"), '{ "type": "module" }');
        for (const [at, node] of [process.execPath, programs.node22].entries()) {
          const output = await inRepository(`${bundler}-${at}`, node, [join(out, "main.js")]);
          assert.match(output, /^\d+ objects, \d+ of them deltas/);
        }
      });
    }
  });
});

/** Standard output of a program that must have succeeded. */
function assertDone({ code, stdout, stderr }: Finished): string {
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  return stdout;
}
