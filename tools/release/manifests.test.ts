import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { archiveName, manifestsOf } from "./manifests.ts";
import { PLATFORMS } from "../build/single/platforms.ts";

const SUMS = PLATFORMS.map(({ name }, index) => ({
  name: archiveName("svc", "1.2.3", name),
  sha256: `${index}`.repeat(64),
}));
const PARTS = {
  name: "svc",
  version: "1.2.3",
  epoch: 1_800_000_000,
  url: "https://example.com/v1.2.3/",
  publisher: "Example",
  sums: SUMS,
} as const;

describe("manifestsOf", () => {
  const manifests = manifestsOf(PARTS);
  const of = (path: string): string => manifests.get(path) ?? assert.fail(`no ${path}`);

  it("names address and hash of each archive for Homebrew", () => {
    const formula = of("homebrew/svc.rb");
    assert.match(formula, /^class Svc < Formula$/m);
    for (const { name, sha256 } of SUMS.filter((sum) => !sum.name.includes("win"))) {
      assert.ok(formula.includes(`url "https://example.com/v1.2.3/${name}"\n      sha256 "${sha256}"`), name);
    }
    assert.match(formula, /codesign/);
  });

  it("names the archive for Windows in Scoop's and winget's form", () => {
    const { name, sha256 } = SUMS.at(-1) ?? assert.fail();
    const url = `https://example.com/v1.2.3/${name}`;
    assert.deepEqual(JSON.parse(of("scoop/svc.json")).architecture["64bit"], {
      url,
      hash: sha256,
      extract_dir: "svc-1.2.3-win-x64",
    });
    const base = "winget/Example.svc/1.2.3/Example.svc";
    const installer = parse(of(`${base}.installer.yaml`));
    assert.deepEqual(installer.Installers, [
      { Architecture: "x64", InstallerUrl: url, InstallerSha256: sha256.toUpperCase() },
    ]);
    assert.equal(installer.NestedInstallerFiles[0].RelativeFilePath, "svc-1.2.3-win-x64\\svc.exe");
    for (const file of [`${base}.yaml`, `${base}.locale.en-US.yaml`]) {
      const { PackageIdentifier, PackageVersion } = parse(of(file));
      assert.deepEqual([PackageIdentifier, PackageVersion], ["Example.svc", "1.2.3"], file);
    }
  });

  it("refuses a release that lacks an archive", () => {
    assert.throws(
      () => manifestsOf({ ...PARTS, sums: SUMS.slice(1) }),
      /has no svc-1\.2\.3-linux-x64\.tar\.gz/,
    );
  });
});
