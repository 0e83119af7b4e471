import assert from "node:assert/strict";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { buildRepository, git, temporaryFolder, tryGit } from "../../test/git.test-kit.ts";
import { ObjectDatabase } from "../object-database.ts";
import { ObjectSources, parseAlternates, parseShallow } from "./object-sources.ts";

describe("parseAlternates", () => {
  const ROWS: [name: string, content: string | Buffer, paths: string[]][] = [
    ["nothing", "", []],
    ["blank lines", "\n\n", []],
    ["paths without a last newline", "/a\n/b c", ["/a", "/b c"]],
    ["comments", "#/a\n/b\n# c", ["/b"]],
    ["a number sign that begins no line", " #a\n", [" #a"]],
    ["a path in quotes", '"/a\\tb\\"\\\\\\303\\244"\n/c\n', ['/a\tb"\\ä', "/c"]],
    ["quotes around a newline", '"/a\nb"\n', ["/a\nb"]],
    ["quotes that are not closed", '"/a\n/b\n', ['"/a', "/b"]],
    ["an unknown escape", '"/a\\q"\n/b\n', ['"/a\\q"', "/b"]],
    ["an octal escape that is cut", '"/a\\30', ['"/a\\30']],
    ["a carriage return, which belongs to the path", "/a\r\n", ["/a\r"]],
    ["a NUL, where git stops", "/a\n/b\0c\n/d\n", ["/a", "/b"]],
    ["UTF-8", "/ä\n", ["/ä"]],
  ];
  for (const [name, content, paths] of ROWS) {
    it(`reads ${name}`, () => assert.deepEqual(parseAlternates(Buffer.from(content)), paths));
  }
});

/** Makes bare repositories, each of which borrows from the next one. */
function chain(folder: string, length: number): string[] {
  const paths = Array.from({ length }, (_, at) => join(folder, `level ${at}.git`));
  for (const [at, path] of paths.entries()) {
    git(folder, ["init", "-q", "--bare", "--template=", path]);
    mkdirSync(join(path, "objects/info"), { recursive: true });
    git(path, ["hash-object", "-w", "--stdin"], `object ${at}`);
    const next = paths[at + 1];
    if (next !== undefined) alternate(path, `../../level ${at + 1}.git/objects\n`);
  }
  return paths;
}

function alternate(repository: string, content: string): void {
  mkdirSync(join(repository, "objects/info"), { recursive: true });
  writeFileSync(join(repository, "objects/info/alternates"), content);
}

function sourcesOf(repository: string): ObjectSources {
  const sources = new ObjectSources(join(repository, "objects"), [], "sha1");
  sources.refresh();
  return sources;
}

describe("ObjectSources", () => {
  it("follows as many levels as git, and names those that it does not follow", () => {
    using folder = temporaryFolder();
    const paths = chain(folder.path, 9);
    const { folders, problems } = sourcesOf(paths[0]!);
    const sees = (at: number): boolean => {
      const oid = git(folder.path, ["hash-object", "--stdin"], `object ${at}`).toString().trim();
      return tryGit(paths[0]!, ["cat-file", "-e", oid]).status === 0;
    };
    assert.equal(folders.length, paths.filter((_, at) => sees(at)).length);
    assert.equal(folders.length, 7);
    assert.match(
      problems.join(),
      /level 6.git\/objects\/info\/alternates is not followed: it is nested too deep/,
    );
  });

  it("ends at a loop, and takes a folder with two names once", () => {
    using folder = temporaryFolder();
    const [one, two] = chain(folder.path, 2) as [string, string];
    symlinkSync(two, join(folder.path, "link"));
    alternate(two, `../../level 0.git/objects\n`);
    alternate(one, `${two}/objects\n${folder.path}/link/objects\n../objects\n`);
    assert.deepEqual(sourcesOf(one).folders, [`${one}/objects`, `${two}/objects`]);
  });

  it("goes on after a missing folder, and names it", () => {
    using folder = temporaryFolder();
    const [one, two] = chain(folder.path, 2) as [string, string];
    alternate(one, `/does/not/exist\n${two}/objects\n`);
    const { folders, problems } = sourcesOf(one);
    assert.equal(folders.length, 2);
    assert.deepEqual(problems, [
      `the folder "/does/not/exist", which ${one}/objects/info/alternates names, cannot be opened`,
    ]);
  });
});

for (const format of ["sha1", "sha256"] as const) {
  it(`ObjectDatabase reads packs and loose objects of alternates, ${format}`, () => {
    using folder = temporaryFolder();
    const source = buildRepository(folder.path, format, { commits: 5 });
    const loose = git(source, ["hash-object", "-w", "--stdin"], "loose").toString().trim();
    git(folder.path, ["clone", "-q", "--bare", "--shared", source, "borrower.git"]);
    const objects = ObjectDatabase.open(join(folder.path, "borrower.git/objects"), { format });
    assert.equal(objects.read(loose).content.toString(), "loose");
    assert.deepEqual(objects.info(loose), { type: "blob", size: 5 });
    for (const oid of git(source, ["rev-list", "--objects", "--no-object-names", "--all"])
      .toString()
      .trim()
      .split("\n")) {
      assert.ok(objects.has(oid));
      objects.read(oid);
    }
    objects.close();
  });
}

it("ObjectDatabase.attach with a further folder reads the objects in it", () => {
  using folder = temporaryFolder();
  const source = buildRepository(folder.path, "sha1", { commits: 5 });
  const quarantine = join(folder.path, "quarantine");
  cpSync(join(buildOther(folder.path), "objects"), quarantine, { recursive: true });
  const [packed, loose] = [
    git(folder.path, ["hash-object", "--stdin"], "packed"),
    git(folder.path, ["hash-object", "--stdin"], "loose"),
  ].map((oid) => oid.toString().trim()) as [string, string];
  const objects = ObjectDatabase.open(join(source, "objects"));
  const view = ObjectDatabase.attach(objects.shared(), { extraFolders: [quarantine] });
  for (const oid of [packed, loose]) {
    assert.ok(view.has(oid));
    assert.match(view.read(oid).content.toString(), /packed|loose/);
    assert.ok(!objects.has(oid));
  }
  assert.ok(view.has(git(source, ["rev-parse", "main"]).toString().trim()));
  assert.deepEqual(view.loose.list().ids, [loose]);
  view.close();
  objects.close();
});

/** A repository with one packed and one loose object. */
function buildOther(folder: string): string {
  const path = join(folder, "other.git");
  git(folder, ["init", "-q", "--bare", "--template=", path]);
  const packed = git(path, ["hash-object", "-w", "--stdin"], "packed");
  git(path, ["pack-objects", "-q", join(path, "objects/pack/pack")], packed);
  git(path, ["prune-packed", "-q"]);
  git(path, ["hash-object", "-w", "--stdin"], "loose");
  return path;
}

describe("parseShallow", () => {
  const id = "a".repeat(40);
  const other = "b".repeat(40);
  it("reads ids, also without a last newline", () => {
    assert.deepEqual(parseShallow(`${id}\n${other}`, "sha1", "shallow"), new Set([id, other]));
    assert.deepEqual(parseShallow("", "sha1", "shallow"), new Set());
  });
  for (const [name, text] of [
    ["a blank line", `${id}\n\n${other}\n`],
    ["an id that is too short", `${id}\n${other.slice(1)}\n`],
    ["an id of another format", `${id}${"c".repeat(24)}\n`],
    ["upper case", `${id.toUpperCase()}\n`],
    ["a NUL", `${id}\0\n`],
    ["a carriage return", `${id}\r\n`],
    ["a name of a ref", "refs/heads/main\n"],
  ] as const) {
    it(`refuses ${name}`, () => {
      assert.throws(() => parseShallow(text, "sha1", "shallow"), {
        code: "corrupt_repository",
        message: /^Cannot read shallow: line \d/,
      });
    });
  }
});
