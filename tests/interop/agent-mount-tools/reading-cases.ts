import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { BOX_IMAGE, readersPython, run, startDockerd, tempFolder } from "@devplat/testkit";
import type { MountStand } from "../agent-mount-stand.ts";
import type { Row } from "./table.ts";

/** Fields of the secret `app/files`: each is a file for a program. */
export const APP_FILES: Readonly<Record<string, string>> = {
  env: 'DB_PASSWORD=pw-7f3a\nAPI_KEY="two words"\n',
  netrc: "machine 127.0.0.1 login ada password netrc-91c2\n",
  npmrc: "//127.0.0.1:4873/:_authToken=unused\nsign-git-tag=true\nregistry=http://npm.example/\n",
  ssh_config: "Host build\n  HostName build.example\n  User ada\n  Port 2222\n",
  kubeconfig: `apiVersion: v1
kind: Config
clusters: [{ name: main, cluster: { server: "https://k8s.example" } }]
users: [{ name: ada, user: { token: kube-55d1 } }]
contexts: [{ name: main, context: { cluster: main, user: ada } }]
current-context: main
`,
};
/** Document and fields of the secret `demo/registry`. */
export const REGISTRY = '{\n  "user": "ada",\n  "password": "first"\n}\n';
/** A secret of 300 KiB, so that programs read it in several pieces. */
export const LARGE_VALUE = "0123456789abcdef".repeat(300 * 64);

/** Where a case runs. */
export interface ReadingPlace {
  readonly stand: MountStand;
  /** An empty folder on a disk. */
  readonly folder: string;
  /** Runs a command in the folder and insists on success. @returns standard output */
  readonly ok: (command: string, args: readonly string[], env?: NodeJS.ProcessEnv) => Promise<string>;
}

export interface ReadingCase {
  readonly row: Row;
  readonly assertRow: (place: ReadingPlace) => Promise<void>;
}

/** Runs a case in a folder of its own. */
export async function assertReading(stand: MountStand, given: ReadingCase): Promise<void> {
  const folder = await tempFolder("agent-mount-tool");
  try {
    await given.assertRow({
      stand,
      folder: folder.path,
      ok: async (command, args, env = {}) => {
        const { code, stdout, stderr } = await run(command, args, {
          cwd: folder.path,
          env: { PATH: process.env["PATH"], HOME: folder.path, ...env },
          timeoutMs: 30_000,
        });
        assert.equal(code, 0, `${command} ${args.join(" ")}: ${stderr}`);
        return stdout;
      },
    });
  } finally {
    await folder.remove();
  }
}

/** All files on the mount with their content. */
function allFiles(): Record<string, string> {
  const files = Object.entries(APP_FILES).map(([name, text]) => [`app/files.d/${name}`, text] as const);
  return {
    "app/files.json": `${JSON.stringify(APP_FILES, undefined, 2)}\n`,
    ...Object.fromEntries(files),
    "demo/large.json": `${JSON.stringify({ value: LARGE_VALUE }, undefined, 2)}\n`,
    "demo/large.d/value": LARGE_VALUE,
    "demo/registry.json": REGISTRY,
    "demo/registry.d/user": "ada",
    "demo/registry.d/password": "first",
  };
}

/** Insists that a folder on a disk has the same files as the mount should have. */
async function assertCopied({ ok }: ReadingPlace, folder: string): Promise<void> {
  const names = (await ok("find", [folder, "-type", "f", "-printf", "%P\\n"])).trim().split("\n");
  const expected = allFiles();
  assert.deepEqual(names.toSorted(), Object.keys(expected).toSorted());
  for (const [name, text] of Object.entries(expected))
    assert.equal(await readFile(join(folder, name), "utf8"), text, name);
}

const field = (place: ReadingPlace, name: string): string => place.stand.at("app/files.d", name);

/** Runs a client of a local web server, and gives the header `Authorization` that arrived. */
async function authorizationOf(client: (address: string) => Promise<unknown>): Promise<string> {
  let seen = "";
  const server = createServer((request, response) => {
    seen = request.headers.authorization ?? "";
    response.setHeader("content-type", "application/json").end('{"username":"ada"}');
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  try {
    await client(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  } finally {
    server.close();
  }
  return seen;
}

export const READING_CASES: readonly ReadingCase[] = [
  {
    row: { tool: "jq", does: "reads a field", result: "the value" },
    assertRow: async ({ ok, stand }) => {
      assert.equal(await ok("jq", ["-r", ".password", stand.at("demo/registry.json")]), "first\n");
      assert.equal(await ok("jq", ["-j", ".value", stand.at("demo/large.json")]), LARGE_VALUE);
    },
  },
  {
    row: { tool: "cp", does: "copies the tree with `-a`", result: "equal files, times kept" },
    assertRow: async (place) => {
      await place.ok("cp", ["-a", place.stand.mountpoint, "copy"]);
      await assertCopied(place, join(place.folder, "copy"));
      const times = (path: string): Promise<string> => place.ok("stat", ["-c", "%Y %s", path]);
      assert.equal(await times("copy/demo/registry.json"), await times(place.stand.at("demo/registry.json")));
    },
  },
  {
    row: {
      tool: "rsync",
      does: "copies the tree with `-a`",
      result: "equal files; a second run copies none",
    },
    assertRow: async (place) => {
      const source = `${place.stand.mountpoint}/`;
      await place.ok("rsync", ["-a", source, "copy/"]);
      await assertCopied(place, join(place.folder, "copy"));
      assert.equal(await place.ok("rsync", ["-ai", source, "copy/"]), "");
      assert.equal(await place.ok("rsync", ["-aic", source, "copy/"]), "");
    },
  },
  {
    row: { tool: "tar", does: "packs the tree", result: "equal files after unpacking" },
    assertRow: async (place) => {
      await place.ok("tar", ["-cf", "all.tar", "-C", place.stand.mountpoint, "."]);
      await mkdir(join(place.folder, "copy"));
      await place.ok("tar", ["-xf", "all.tar", "-C", "copy"]);
      await assertCopied(place, join(place.folder, "copy"));
      await place.ok("tar", ["-df", "all.tar", "-C", place.stand.mountpoint]);
    },
  },
  {
    row: { tool: "find", does: "lists files by name, size and time", result: "every file once" },
    assertRow: async ({ ok, stand }) => {
      const found = await ok("find", [stand.mountpoint, "-type", "f", "-printf", "%P %s\\n"]);
      const expected = Object.entries(allFiles()).map(([name, text]) => `${name} ${text.length}`);
      assert.deepEqual(found.trim().split("\n").toSorted(), expected.toSorted());
      const recent = ["-name", "registry.json", "-size", `${REGISTRY.length}c`, "-mmin", "-60"];
      assert.equal(await ok("find", [stand.mountpoint, ...recent]), `${stand.at("demo/registry.json")}\n`);
    },
  },
  {
    row: { tool: "grep", does: "searches the tree with `-r`", result: "the lines with the value" },
    assertRow: async ({ ok, stand }) => {
      const found = await ok("grep", ["-r", "--files-with-matches", "netrc-91c2", stand.mountpoint]);
      const names = ["app/files.d/netrc", "app/files.json"];
      assert.deepEqual(
        found.trim().split("\n").toSorted(),
        names.map((name) => stand.at(name)),
      );
    },
  },
  {
    row: { tool: "git", does: "`hash-object`, `diff --no-index`", result: "the right id; the difference" },
    assertRow: async ({ ok, stand, folder }) => {
      const text = APP_FILES["env"] ?? "";
      const id = createHash("sha1").update(`blob ${text.length}\0${text}`).digest("hex");
      assert.equal(await ok("git", ["hash-object", stand.at("app/files.d/env")]), `${id}\n`);
      await writeFile(join(folder, "other"), text.replace("pw-7f3a", "other"));
      const path = stand.at("app/files.d/env");
      const { code, stdout } = await run("git", ["diff", "--no-index", "other", path], { cwd: folder });
      assert.equal(code, 1);
      assert.match(stdout, /^-DB_PASSWORD=other\n\+DB_PASSWORD=pw-7f3a$/m);
    },
  },
  {
    row: {
      tool: "git",
      does: "`add` with the mount as its work tree, `status`",
      result: "equal blobs; clean afterwards",
    },
    assertRow: async ({ ok, stand }) => {
      await ok("git", ["init", "-q", "--bare", "repository"]);
      const git = (...args: string[]): Promise<string> =>
        ok("git", ["--git-dir=repository", `--work-tree=${stand.mountpoint}`, ...args]);
      await git("add", "--all");
      for (const [name, text] of Object.entries(allFiles()))
        assert.equal(await git("cat-file", "blob", `:${name}`), text, name);
      assert.equal(await git("diff-files"), "");
    },
  },
  {
    row: { tool: "direnv", does: "`dotenv` in `.envrc`", result: "the variables" },
    assertRow: async (place) => {
      await writeFile(join(place.folder, ".envrc"), `dotenv ${field(place, "env")}\n`);
      await place.ok("direnv", ["allow", "."]);
      const shown = await place.ok("direnv", ["exec", ".", "printenv", "DB_PASSWORD", "API_KEY"]);
      assert.equal(shown, "pw-7f3a\ntwo words\n");
    },
  },
  {
    row: { tool: "python-dotenv", does: "`dotenv_values`", result: "the variables" },
    assertRow: async (place) => {
      const script = "import dotenv, json, sys; print(json.dumps(dotenv.dotenv_values(sys.argv[1])))";
      const shown = await place.ok(readersPython(), ["-c", script, field(place, "env")]);
      assert.deepEqual(JSON.parse(shown), { DB_PASSWORD: "pw-7f3a", API_KEY: "two words" });
    },
  },
  {
    row: { tool: "docker-compose", does: "`env_file`", result: "the variables" },
    assertRow: async (place) => {
      const service = `{ image: box, env_file: ["${field(place, "env")}"] }`;
      await writeFile(
        join(place.folder, "docker-compose.yml"),
        `version: "3"\nservices: { app: ${service} }\n`,
      );
      const shown = await place.ok("docker-compose", ["config"]);
      assert.match(shown, /^ +API_KEY: two words\n +DB_PASSWORD: pw-7f3a$/m);
    },
  },
  {
    row: { tool: "docker", does: "`run --env-file`", result: "the variables; Docker keeps quotes" },
    assertRow: async (place) => {
      const docker = await startDockerd();
      try {
        const flags = ["--rm", "--network=none", "--env-file", field(place, "env")];
        const script = 'echo "$DB_PASSWORD|$API_KEY"';
        assert.equal(await docker.ok("run", ...flags, BOX_IMAGE, "sh", "-c", script), 'pw-7f3a|"two words"');
      } finally {
        await docker.stop();
      }
    },
  },
  {
    row: { tool: "kubectl", does: "`--kubeconfig`", result: "the token of the user" },
    assertRow: async (place) => {
      const args = ["config", "view", "--raw", "-o", "jsonpath={.users[0].user.token}"];
      const shown = await place.ok("kubectl", [`--kubeconfig=${field(place, "kubeconfig")}`, ...args]);
      assert.equal(shown, "kube-55d1");
    },
  },
  {
    row: { tool: "ssh", does: "`-F`", result: "the settings of the host" },
    assertRow: async (place) => {
      const shown = await place.ok("ssh", ["-G", "-F", field(place, "ssh_config"), "build"]);
      assert.match(shown, /^hostname build\.example\nport 2222$/m);
    },
  },
  {
    row: { tool: "curl", does: "`--netrc-file`", result: "user and password arrive at the server" },
    assertRow: async (place) => {
      const seen = await authorizationOf((address) =>
        place.ok("curl", ["--silent", "--fail", "--netrc-file", field(place, "netrc"), address]),
      );
      assert.equal(seen, `Basic ${Buffer.from("ada:netrc-91c2").toString("base64")}`);
    },
  },
  {
    row: { tool: "npm", does: "`--userconfig`", result: "the settings" },
    assertRow: async (place) => {
      const npm = (...args: string[]): Promise<string> =>
        place.ok("npm", [...args, "--userconfig", field(place, "npmrc")]);
      assert.equal(
        await npm("config", "get", "registry", "sign-git-tag"),
        "registry=http://npm.example/\nsign-git-tag=true\n",
      );
    },
  },
];
