import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, it } from "node:test";
import { environmentKeys } from "@devplat/config";
import { configSchema as agentSchema } from "../../apps/agent/src/config/schema.ts";
import { configSchema as svcSchema } from "../../apps/svc/src/config/schema.ts";
import { ROOT } from "./sources.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** Every document that a person wrote, from the root. */
const DOCUMENTS = globSync(["*.md", "docs/**/*.md", "apps/*/README.md", "packages/*/README.md"], {
  cwd: ROOT,
});
/** Spans of code that look like a path below one of our folders. */
const PATH_SPAN = /`((?:apps|packages|tests|tools|bench|docs)\/[\w./-]+)`/g;
/** Target of a Markdown link or image, without the part after `#`. */
const LINK = /\]\(([^)\s#]+)(?:#[^)]*)?\)/g;

/** The address of a heading within its page, as code hosts make it. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

/** Names of the packages in one of the manifests' lists of dependencies, ours apart. */
function namedPackages(): Set<string> {
  const manifests = globSync(["package.json", "{apps,packages,tests,tools}/*/package.json"], { cwd: ROOT });
  const lists = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];
  const names = manifests.flatMap((path) => {
    const manifest = JSON.parse(read(path)) as Record<string, Record<string, string> | undefined>;
    return lists.flatMap((list) => Object.keys(manifest[list] ?? {}));
  });
  return new Set(names.filter((name) => !name.startsWith("@devplat/")));
}

describe("documents", () => {
  it("every link and image of a document leads to a file", () => {
    const broken = DOCUMENTS.flatMap((path) =>
      [...read(path).matchAll(LINK)]
        .map(([, target = ""]) => target)
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => !existsSync(resolve(ROOT, dirname(path), target)))
        .map((target) => `${path} links to ${target}`),
    );
    assert.ok(DOCUMENTS.length > 10);
    assert.deepEqual(broken, []);
  });

  it("every link to a heading leads to one", () => {
    const headings = (path: string): Set<string> =>
      new Set([...read(path).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => anchorOf(title)));
    const broken = DOCUMENTS.flatMap((path) =>
      [...read(path).matchAll(/\]\(([^)\s#:]*)#([^)\s]+)\)/g)]
        .map(([, target = "", anchor = ""]) => ({
          to: target === "" ? path : join(dirname(path), target),
          anchor,
        }))
        .filter(({ to, anchor }) => to.endsWith(".md") && !headings(to).has(anchor))
        .map(({ to, anchor }) => `${path} links to ${to}#${anchor}`),
    );
    assert.deepEqual(broken, []);
  });

  it("every path that the architecture page names exists", () => {
    const paths = [...read("docs/architecture.md").matchAll(PATH_SPAN)].map(([, path = ""]) => path);
    // One page: a reader remembers no more.
    const distinct = new Set(paths).size;
    assert.ok(distinct > 10 && distinct <= 20, `${distinct} paths`);
    assert.deepEqual(
      paths.filter((path) => !existsSync(join(ROOT, path))),
      [],
    );
  });

  it("docs/dependencies.md lists every dependency of a package.json, and no other", () => {
    const used = namedPackages();
    assert.ok(used.size > 15);
    const rows = read("docs/dependencies.md").matchAll(/^\| (`[^|]*)\|/gm);
    const listed = [...rows].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
    );
    assert.deepEqual(listed.toSorted(), [...used].toSorted());
  });

  it("docs/svc/configuration.md has each configuration key with its variable", () => {
    const text = read("docs/svc/configuration.md");
    const keys = environmentKeys(svcSchema, "SVC");
    assert.ok(keys.length > 30);
    assert.deepEqual(
      keys.filter(({ variable, path }) => !text.includes(`| \`${path.join(".")}\` | \`${variable}\` |`)),
      [],
    );
  });

  it("every configuration key that docs/agent/configuration.md explains is one", () => {
    const known = new Set(environmentKeys(agentSchema, "AGENT").map(({ path }) => path.join(".")));
    const rows = read("docs/agent/configuration.md").matchAll(
      /^\| (`(?:store|sync|web|api|fuse|docker|agent|ssh|observability)\.[^|]*|`bypass_system_config`[^|]*)\|/gm,
    );
    const explained = [...rows].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([\w.]+)`/g)].map(([, key = ""]) => key),
    );
    assert.ok(explained.length > 15);
    assert.deepEqual(
      explained.filter((key) => !known.has(key)),
      [],
    );
    // Keys of lists have tables of their own; those of remote_config stand without the section's name.
    const elsewhere = /^(?:remote_config|rules|enrolments|git_credentials)\b/;
    assert.deepEqual(
      [...known].filter((key) => !elsewhere.test(key) && !explained.includes(key)),
      [],
    );
  });

  it("every decision record is in the index under its title", () => {
    const index = read("docs/decisions/README.md");
    const records = globSync("docs/decisions/[0-9]*.md", { cwd: ROOT }).map((path) =>
      path.slice("docs/decisions/".length),
    );
    const missing = records.filter((name) => {
      const title = /^# \d{4}: (.+)$/m.exec(read(`docs/decisions/${name}`))?.[1] ?? "no title";
      return !index.includes(`| [${name.slice(0, 4)}](${name}) | ${title} |`);
    });
    assert.ok(records.length >= 14);
    assert.deepEqual(missing, []);
  });
});
