import assert from "node:assert/strict";
import { dirname, join, posix } from "node:path";
import { describe, it } from "node:test";
import { importsOf, readSources, readTexts, readWorkspaces, type Source } from "./sources.ts";

const workspaces = readWorkspaces();
const sources = readSources(workspaces);
const product = sources.filter(({ isTest, path }) => !isTest && /^(apps|packages)\//.test(path));
const isRelative = (name: string): boolean => name.startsWith(".");

/** The workspace that a bare import names, whether by its entry or deeper. */
const named = (name: string) =>
  workspaces.find((each) => name === each.name || name.startsWith(`${each.name}/`));

/** Every "file imports module" that breaks a rule. */
function offences(files: readonly Source[], breaks: (source: Source, name: string) => boolean): string[] {
  return files.flatMap((source) =>
    source.imports.filter((name) => breaks(source, name)).map((name) => `${source.path} imports ${name}`),
  );
}

const known = new Set(product.map(({ path }) => path));
/** The product files that each file imports, for its types too. */
const imported: ReadonlyMap<string, readonly string[]> = new Map(
  product.map(({ path, text }) => [
    path,
    importsOf(text)
      .map((name) => posix.join(posix.dirname(path), name))
      .filter((target) => known.has(target)),
  ]),
);

/** The ways that lead back to where they began. */
function circlesOf(edges: ReadonlyMap<string, Iterable<string>>): string[] {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (place: string, way: readonly string[]): void => {
    if (way.includes(place)) circles.push([...way.slice(way.indexOf(place)), place].join(" → "));
    if (done.has(place)) return;
    done.add(place);
    for (const next of edges.get(place) ?? []) visit(next, [...way, place]);
  };
  for (const place of edges.keys()) visit(place, []);
  return circles;
}
const inFolder = (folder: string) => (source: Source) => source.path.startsWith(folder);

describe("import directions", () => {
  it("sources are found and their imports read in every form", () => {
    assert.ok(product.length > 20);
    assert.ok(sources.some(({ imports }) => imports.includes("@devplat/base")));
    const text = [
      `import a from "one";`,
      `import {\n  b,\n} from "two";`,
      `export type { C } from "three";`,
      `import "four";`,
      `const d = await import("five");`,
      `require("six")`,
    ].join("\n");
    assert.deepEqual(importsOf(text).toSorted(), ["five", "four", "one", "six", "three", "two"]);
  });

  it("apps never import each other, and nothing imports an app", () => {
    const breaks = (_: Source, name: string): boolean => named(name)?.folder.startsWith("apps/") === true;
    assert.deepEqual(offences(sources, breaks), []);
  });

  it("a relative import stays inside its workspace", () => {
    const leaves = ({ path, workspace }: Source, name: string): boolean =>
      workspace !== undefined &&
      isRelative(name) &&
      !join(dirname(path), name).startsWith(`${workspace.folder}/`);
    assert.deepEqual(offences(sources, leaves), []);
    // From outside (tools, bench, interop tests) a package is entered by its name alone. An app has no entry:
    // what tests a part of one against a real peer, or measures it, names the part's file.
    const enters = ({ path, workspace }: Source, name: string): boolean =>
      workspace === undefined &&
      isRelative(name) &&
      workspaces.some(
        ({ folder }) => !folder.startsWith("apps/") && join(dirname(path), name).startsWith(`${folder}/`),
      );
    assert.deepEqual(offences(sources, enters), []);
  });

  it("another package is imported by an entry that it exports", () => {
    const deep = (_: Source, name: string): boolean => {
      const target = named(name);
      return target !== undefined && !target.exports.includes(`.${name.slice(target.name.length)}`);
    };
    assert.deepEqual(offences(sources, deep), []);
  });

  it("base imports no other package of the house", () => {
    const breaks = (_: Source, name: string): boolean => named(name) !== undefined;
    assert.deepEqual(offences(product.filter(inFolder("packages/base/")), breaks), []);
  });

  it("git-protocol imports node, git-store also git-protocol, git-mirror also base", () => {
    const beyond =
      (...allowed: string[]) =>
      (_: Source, name: string): boolean =>
        !isRelative(name) && !name.startsWith("node:") && !allowed.includes(name);
    assert.deepEqual(offences(product.filter(inFolder("packages/git-protocol/")), beyond()), []);
    assert.deepEqual(
      offences(
        product.filter(inFolder("packages/git-store/")),
        beyond(
          "@devplat/git-protocol",
          "@devplat/git-protocol/object-info",
          "@devplat/git-protocol/receive-pack",
        ),
      ),
      [],
    );
    const below = (_: Source, name: string): boolean =>
      !isRelative(name) &&
      !name.startsWith("node:") &&
      !/^@devplat\/(?:base|git-protocol|git-store)(?:\/|$)/.test(name);
    assert.deepEqual(offences(product.filter(inFolder("packages/git-mirror/")), below), []);
  });

  it("ssh-protocol imports node, base and its key derivation", () => {
    const beyond = (_: Source, name: string): boolean =>
      !isRelative(name) && !name.startsWith("node:") && !["@devplat/base", "bcrypt-pbkdf"].includes(name);
    assert.deepEqual(offences(product.filter(inFolder("packages/ssh-protocol/src/")), beyond), []);
  });

  it("fuse-protocol imports node and base", () => {
    const beyond = (_: Source, name: string): boolean =>
      !isRelative(name) && !name.startsWith("node:") && name !== "@devplat/base";
    assert.deepEqual(offences(product.filter(inFolder("packages/fuse-protocol/src/")), beyond), []);
  });

  it("packages of wire formats do no input or output", () => {
    const doesIo = (_: Source, name: string): boolean =>
      /^node:(fs|net|http|https|http2|tls|child_process)/.test(name);
    for (const name of ["git-protocol", "ssh-protocol", "fuse-protocol"]) {
      assert.deepEqual(offences(product.filter(inFolder(`packages/${name}/src/`)), doesIo), []);
    }
  });

  it("packages import each other in one direction: there is no cycle", () => {
    const edges = new Map(
      workspaces.map(({ name, folder }) => [
        name,
        new Set(
          product
            .filter(inFolder(`${folder}/`))
            .flatMap(({ imports }) => imports.flatMap((each) => named(each)?.name ?? []))
            .filter((target) => target !== name),
        ),
      ]),
    );
    const reach = (from: string, seen: ReadonlySet<string>): string[] =>
      [...(edges.get(from) ?? [])].flatMap((next) =>
        seen.has(next) ? [`${[...seen].join(" → ")} → ${next}`] : reach(next, new Set([...seen, next])),
      );
    assert.deepEqual(
      workspaces.flatMap(({ name }) => reach(name, new Set([name]))),
      [],
    );
  });

  it("files import each other without a circle, types and import() included", () => {
    assert.ok(imported.size > 100);
    assert.deepEqual(circlesOf(imported), []);
  });

  it("the folders of an app import each other in one direction, type imports counted", () => {
    // The depth says how many levels of folders count as places of their own.
    for (const [app, depth] of [
      ["svc", 1],
      ["agent", 1],
      ["agent", 2],
      ["agent", 3],
    ] as const) {
      const root = `apps/${app}/src/`;
      // A file next to the folders counts as its own folder.
      const placeOf = (path: string): string => {
        const parts = path.slice(root.length).split("/");
        return parts.length === 1 ? path : parts.slice(0, -1).slice(0, depth).join("/");
      };
      const edges = new Map<string, Set<string>>();
      for (const [path, targets] of imported) {
        if (!path.startsWith(root)) continue;
        const from = placeOf(path);
        const others = targets.map(placeOf).filter((to) => to !== from);
        edges.set(from, new Set([...(edges.get(from) ?? []), ...others]));
      }
      assert.ok(edges.size > 10);
      assert.deepEqual(circlesOf(edges), []);
    }
  });

  it("a workspace declares every package that its product code imports", () => {
    const undeclared = ({ workspace }: Source, name: string): boolean => {
      if (workspace === undefined || isRelative(name) || name.startsWith("node:")) return false;
      const packageName = name
        .split("/")
        .slice(0, name.startsWith("@") ? 2 : 1)
        .join("/");
      return !workspace.dependencies.includes(packageName);
    };
    assert.deepEqual(offences(product, undeclared), []);
  });

  it("product code never imports the test kit", () => {
    assert.deepEqual(
      offences(product, (_, name) => name === "@devplat/testkit"),
      [],
    );
  });

  it("a package's entry only re-exports", () => {
    for (const { path, text } of sources.filter((source) =>
      /^packages\/[^/]+\/src\/index\.ts$/.test(source.path),
    )) {
      const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
      const rest = code.replace(/export (?:type )?(?:\*(?: as \w+)?|\{[^}]*\}) from "[^"]+";/g, "");
      assert.equal(rest.trim(), "", path);
    }
  });
});

describe("what no file holds", () => {
  it("nothing outside bench reads the folder next to the repository", () => {
    // Put together, so that this file does not name it.
    const outside = ["..", "shared"].join("/");
    const readers = sources.filter(({ path, text }) => !path.startsWith("bench/") && text.includes(outside));
    assert.deepEqual(
      readers.map(({ path }) => path),
      [],
    );
  });

  it("no file holds a path of the machine it was written on", () => {
    const places = [
      ["", "work", "main"],
      ["", "work", "shared"],
      ["", "tmp", "brief"],
      ["", "root", ""],
    ].map((parts) => parts.join("/"));
    const holders = readTexts().filter(({ text }) => places.some((place) => text.includes(place)));
    assert.deepEqual(
      holders.map(({ path }) => path),
      [],
    );
  });

  it("no test is skipped, todo or the only one", () => {
    const marks = /\b(?:it|test|describe|suite)\.(?:skip|todo|only)\b|\{\s*(?:skip|todo|only): true/;
    const marked = sources.filter(({ path, text }) => path.endsWith(".test.ts") && marks.test(text));
    assert.deepEqual(
      marked.map(({ path }) => path),
      [],
    );
  });
});
