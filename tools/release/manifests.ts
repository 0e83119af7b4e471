import { RELEASED } from "./programs.ts";
import type { FileSum } from "./sums.ts";

/** Parts of the manifests of package managers that download archives. */
export interface ManifestParts {
  readonly name: "svc" | "agent";
  readonly version: string;
  readonly epoch: number;
  /** Address of the folder that the files of the release are uploaded to. */
  readonly url: string;
  /** Publisher for winget, such as `Example`. */
  readonly publisher: string;
  readonly sums: readonly FileSum[];
}

const WINGET_SCHEMA = "1.9.0";

/** Manifests for Homebrew, Scoop and winget, by path. */
export function manifestsOf(parts: ManifestParts): Map<string, string> {
  const { name, version, publisher } = parts;
  const winget = `winget/${publisher}.${name}/${version}/${publisher}.${name}`;
  return new Map([
    [`homebrew/${name}.rb`, homebrewFormula(parts)],
    [`scoop/${name}.json`, scoopManifest(parts)],
    [`${winget}.yaml`, wingetVersion(parts)],
    [`${winget}.installer.yaml`, wingetInstaller(parts)],
    [`${winget}.locale.en-US.yaml`, wingetLocale(parts)],
  ]);
}

/** Name of the archive of a program for a platform. */
export function archiveName(name: string, version: string, platform: string): string {
  return `${name}-${version}-${platform}.${platform.startsWith("win") ? "zip" : "tar.gz"}`;
}

function download(
  { name, version, url, sums }: ManifestParts,
  platform: string,
): { url: string; sha256: string } {
  const file = archiveName(name, version, platform);
  const sum = sums.find((each) => each.name === file);
  if (sum === undefined) throw new Error(`Cannot write manifests: the release has no ${file}`);
  return { url: `${url.replace(/\/$/, "")}/${file}`, sha256: sum.sha256 };
}

function homebrewFormula(parts: ManifestParts): string {
  const { name, version } = parts;
  const { summary } = RELEASED[name];
  const source = (platform: string): string => {
    const { url, sha256 } = download(parts, platform);
    return `      url ${JSON.stringify(url)}\n      sha256 ${JSON.stringify(sha256)}`;
  };
  return `class ${name.charAt(0).toUpperCase()}${name.slice(1)} < Formula
  desc ${JSON.stringify(summary.charAt(0).toUpperCase() + summary.slice(1))}
  homepage ${JSON.stringify(parts.url)}
  version ${JSON.stringify(version)}
  license "MIT"

  on_macos do
    on_arm do
${source("darwin-arm64")}
    end
    on_intel do
${source("darwin-x64")}
    end
  end

  on_linux do
    on_arm do
${source("linux-arm64")}
    end
    on_intel do
${source("linux-x64")}
    end
  end

  def install
    bin.install ${JSON.stringify(name)}
    # macOS runs only signed programs on Apple's processors.
    system "codesign", "--force", "--sign", "-", bin/${JSON.stringify(name)} if OS.mac?
    man1.install ${JSON.stringify(`man/${name}.1`)}
    bash_completion.install ${JSON.stringify(`completions/bash/${name}`)}
    zsh_completion.install ${JSON.stringify(`completions/zsh/_${name}`)}
    fish_completion.install ${JSON.stringify(`completions/fish/${name}.fish`)}
    doc.install "LICENSE", "THIRD-PARTY"
  end

  test do
    assert_equal version.to_s, shell_output("#{bin}/${name} version").strip
  end
end
`;
}

function scoopManifest(parts: ManifestParts): string {
  const { name, version } = parts;
  const { url, sha256 } = download(parts, "win-x64");
  const manifest = {
    version,
    description: RELEASED[name].summary,
    homepage: parts.url,
    license: "MIT",
    architecture: { "64bit": { url, hash: sha256, extract_dir: `${name}-${version}-win-x64` } },
    bin: `${name}.exe`,
  };
  return `${JSON.stringify(manifest, undefined, 4)}\n`;
}

function wingetHead(parts: ManifestParts, type: string): string {
  return `# yaml-language-server: $schema=https://aka.ms/winget-manifest.${type}.${WINGET_SCHEMA}.schema.json
PackageIdentifier: ${parts.publisher}.${parts.name}
PackageVersion: ${JSON.stringify(parts.version)}
`;
}

function wingetTail(type: string): string {
  return `ManifestType: ${type}\nManifestVersion: ${WINGET_SCHEMA}\n`;
}

function wingetVersion(parts: ManifestParts): string {
  return `${wingetHead(parts, "version")}DefaultLocale: en-US\n${wingetTail("version")}`;
}

function wingetInstaller(parts: ManifestParts): string {
  const { name, version, epoch } = parts;
  const { url, sha256 } = download(parts, "win-x64");
  return `${wingetHead(parts, "installer")}InstallerType: zip
NestedInstallerType: portable
NestedInstallerFiles:
  - RelativeFilePath: ${name}-${version}-win-x64\\${name}.exe
    PortableCommandAlias: ${name}
ReleaseDate: ${new Date(epoch * 1000).toISOString().slice(0, 10)}
Installers:
  - Architecture: x64
    InstallerUrl: ${url}
    InstallerSha256: "${sha256.toUpperCase()}"
${wingetTail("installer")}`;
}

function wingetLocale(parts: ManifestParts): string {
  const { name, publisher } = parts;
  return `${wingetHead(parts, "defaultLocale")}PackageLocale: en-US
Publisher: ${publisher}
PackageName: ${name}
License: MIT
ShortDescription: ${RELEASED[name].summary}
${wingetTail("defaultLocale")}`;
}
