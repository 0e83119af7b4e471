import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { gzipped } from "./documents.ts";
import { RELEASED } from "./programs.ts";
import { ROOT } from "../build/root.ts";

const DEPLOY = join(ROOT, "deploy");

export const FORMATS = ["deb", "rpm", "apk", "archlinux"] as const;
export type Format = (typeof FORMATS)[number];

/** Names of processors as nfpm takes them. */
const PROCESSORS: Readonly<Record<string, string>> = { "linux-x64": "amd64", "linux-arm64": "arm64" };

/** C libraries that Node needs, by format. Node's own build names glibc 2.28 as the oldest. */
const DEPENDS: Readonly<Record<Format, readonly string[]>> = {
  deb: ["libatomic1 (>= 4.8)", "libc6 (>= 2.28)", "libgcc-s1 (>= 3.0)", "libstdc++6 (>= 9)"],
  rpm: ["glibc >= 2.28", "libatomic", "libstdc++"],
  apk: ["gcompat", "libatomic", "libstdc++"],
  archlinux: ["glibc", "gcc-libs"],
};

/** Parts of a package of a program. */
export interface PackageParts {
  readonly name: "svc" | "agent";
  readonly version: string;
  readonly epoch: number;
  /** `linux-x64`, `linux-arm64` */
  readonly platform: string;
  /** Path of the single executable. */
  readonly program: string;
  readonly documents: ReadonlyMap<string, Buffer>;
  /** Who makes the packages: `Name <address>`. */
  readonly maintainer: string;
  /** Secret PGP key for the packages' own signatures. */
  readonly pgpKey: string | undefined;
}

interface Entry {
  readonly src: string;
  readonly dst: string;
  readonly type?: string;
  readonly packager?: string;
  readonly file_info: { readonly mode: number; readonly mtime: string };
}

/**
 * Makes packages with nfpm.
 *
 * @param folder for the files that go into the packages
 * @param out gets the packages
 */
export async function makePackages(
  nfpm: string,
  parts: PackageParts,
  { folder, out, formats }: { folder: string; out: string; formats: readonly Format[] },
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const contents = await packageContents(parts, folder);
  for (const format of formats) {
    const config = join(folder, `nfpm-${format}.json`);
    await writeFile(config, JSON.stringify(configOf(parts, format, contents), undefined, 2));
    execFileSync(nfpm, ["package", "--config", config, "--packager", format, "--target", `${out}/`], {
      cwd: folder,
      env: { ...process.env, SOURCE_DATE_EPOCH: String(parts.epoch), TZ: "UTC" },
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
}

async function packageContents(parts: PackageParts, folder: string): Promise<Entry[]> {
  const { name, epoch, documents, program } = parts;
  const entries: Entry[] = [];
  const add = async (dst: string, content: Buffer | string, more: Partial<Entry> = {}): Promise<void> => {
    const src = join(folder, dst.slice(1).replaceAll("/", "+"));
    await writeFile(src, content);
    await utimes(src, epoch, epoch);
    const file_info = { mode: 0o644, mtime: new Date(epoch * 1000).toISOString(), ...more.file_info };
    entries.push({ ...more, src, dst, file_info });
  };
  const binary = { mode: 0o755, mtime: new Date(epoch * 1000).toISOString() };
  entries.push({ src: program, dst: `/usr/bin/${name}`, file_info: binary });
  const doc = `/usr/share/doc/${name}`;
  await add(`${doc}/copyright`, copyright(parts));
  await add(`${doc}/changelog.Debian.gz`, gzipped(Buffer.from(debianChangelog(parts))), { packager: "deb" });
  await add(`${doc}/changelog.gz`, gzipped(Buffer.from(await readFile(join(ROOT, "CHANGELOG.md"), "utf8"))));
  for (const [path, content] of documents) {
    const [first = ""] = path.split("/");
    if (path === "THIRD-PARTY") await add(`${doc}/THIRD-PARTY.gz`, gzipped(content));
    if (first === "man") await add(`/usr/share/man/man1/${basename(path)}.gz`, gzipped(content));
    if (first === "examples") await add(`${doc}/${path}`, content);
    if (first === "completions") {
      await add(`${completionFolder(path)}/${basename(path)}`, content, { packager: "deb" });
      for (const packager of ["rpm", "apk", "archlinux"]) {
        const dst = `${completionFolder(path).replace("vendor-completions", "site-functions")}/${basename(path)}`;
        const last = entries.at(-1);
        if (last !== undefined) entries.push({ ...last, dst, packager });
      }
    }
  }
  for (const file of await guideFiles(name)) await add(`${doc}/${file}`, await readFile(join(ROOT, file)));
  for (const { from, to } of await unitFiles(name)) await add(to, await readFile(from));
  if (name === "svc") {
    const mode = { mode: 0o640, mtime: new Date(epoch * 1000).toISOString() };
    const file = await readFile(join(DEPLOY, "packages/svc/svc.yaml"));
    // dpkg would ask what to do with a changed file. The script of the package copies this one at the first install only.
    await add("/usr/share/svc/svc.yaml", file, { packager: "deb" });
    for (const packager of FORMATS.filter((format) => format !== "deb")) {
      await add("/etc/svc/svc.yaml", file, { type: "config|noreplace", file_info: mode, packager });
    }
  }
  const overrides = join(DEPLOY, "packages", name, "lintian-overrides");
  await add(`/usr/share/lintian/overrides/${name}`, await readFile(overrides), { packager: "deb" });
  return entries;
}

function completionFolder(path: string): string {
  if (path.includes("/bash/")) return "/usr/share/bash-completion/completions";
  return path.includes("/zsh/")
    ? "/usr/share/zsh/vendor-completions"
    : "/usr/share/fish/vendor_completions.d";
}

/** Pages that both programs need next to their own. */
const COMMON_PAGES = ["install.md", "glossary.md", "known-gaps.md", "threat-model.md"];
const SVC_FILES = [
  "docs/administrator-guide.md",
  "docs/object-stores.md",
  "docs/scale.md",
  "deploy/prometheus/svc.rules.yaml",
  "deploy/grafana/svc.json",
];

/** Files of a program's guide, relative to the repository. Packages keep these names, so that links between pages work. */
async function guideFiles(name: "svc" | "agent"): Promise<string[]> {
  const pages = (await readdir(join(ROOT, "docs", name))).toSorted().map((file) => `docs/${name}/${file}`);
  const common = [`${name}.md`, ...COMMON_PAGES].map((file) => `docs/${file}`);
  return [...common, ...(name === "svc" ? SVC_FILES : ["docs/agent-config.schema.json"]), ...pages];
}

/** Units of systemd: those of the system are svc's, those of users are agent's. */
async function unitFiles(name: "svc" | "agent"): Promise<{ from: string; to: string }[]> {
  const folders =
    name === "svc"
      ? { system: "/usr/lib/systemd/system", "sysusers.d": "/usr/lib/sysusers.d" }
      : { user: "/usr/lib/systemd/user" };
  const found: { from: string; to: string }[] = [];
  for (const [folder, target] of Object.entries(folders)) {
    const at = join(DEPLOY, "systemd", folder);
    if (!existsSync(at)) continue;
    for (const file of (await readdir(at)).toSorted())
      found.push({ from: join(at, file), to: join(target, file) });
  }
  return found;
}

function configOf(parts: PackageParts, format: Format, contents: readonly Entry[]): object {
  const { name, version, epoch, platform, maintainer, pgpKey } = parts;
  const { summary, description, section, recommends, suggests } = RELEASED[name];
  const script = (file: string): string => join(DEPLOY, "packages", name, file);
  const signature = pgpKey === undefined ? {} : { signature: { key_file: pgpKey } };
  // deb and rpm run the script of an install after an upgrade, too.
  const afterUpgrade = { postupgrade: script("postinst.sh") };
  return {
    name,
    version,
    version_schema: "semver",
    release: "1",
    arch: PROCESSORS[platform],
    platform: "linux",
    section,
    priority: "optional",
    maintainer,
    vendor: maintainer.replace(/ <.*/, ""),
    homepage: "",
    // Debian has it in the file copyright.
    ...(format === "deb" ? {} : { license: "MIT" }),
    // The first line is the summary. The information of Alpine's and Arch's packages has one line for each field.
    description: format === "apk" || format === "archlinux" ? summary : `${summary}\n${description}`,
    mtime: new Date(epoch * 1000).toISOString(),
    depends: DEPENDS[format],
    // The names are Debian's.
    ...(format === "deb" ? { recommends, suggests } : {}),
    contents,
    scripts: {
      postinstall: script("postinst.sh"),
      preremove: script("prerm.sh"),
      ...(name === "svc" ? { postremove: script("postrm.sh") } : {}),
    },
    deb: { compression: "gzip", ...signature },
    rpm: { compression: "zstd", buildhost: "localhost", group: "Applications/System", summary, ...signature },
    apk: { scripts: afterUpgrade },
    archlinux: { packager: maintainer, scripts: afterUpgrade },
  };
}

function debianChangelog({ name, version, epoch, maintainer }: PackageParts): string {
  // In RFC 5322, with a zone in digits.
  const date = new Date(epoch * 1000).toUTCString().replace("GMT", "+0000");
  // Debian orders "~" before everything: 1.2.3~rc.1 comes before 1.2.3.
  const debianVersion = `${version.replace("-", "~")}-1`;
  return `${name} (${debianVersion}) unstable; urgency=medium

  * Release ${version}. The changes are in changelog.gz.

 -- ${maintainer}  ${date}
`;
}

/** Debian's machine-readable form. */
function copyright({ name, documents }: PackageParts): string {
  const licence = (documents.get("LICENSE") ?? Buffer.alloc(0)).toString();
  const [, holder = ""] = /^Copyright \(c\) (.*)$/m.exec(licence) ?? [];
  const text = licence
    .slice(licence.indexOf("Permission is hereby"))
    .trimEnd()
    .split("\n")
    .map((line) => (line === "" ? " ." : ` ${line}`));
  return [
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/",
    `Upstream-Name: ${name}`,
    "",
    "Files: *",
    `Copyright: ${holder}`,
    "License: Expat",
    ...text,
    "Comment:",
    ` The program contains Node.js and packages from npm. Their licences are in`,
    ` /usr/share/doc/${name}/THIRD-PARTY.gz.`,
    "",
  ].join("\n");
}

/** Builds nfpm from the versions that `tools/nfpm` pins, once. @param cache folder for it */
export async function buildNfpm(cache: string): Promise<string> {
  const sources = join(ROOT, "tools/nfpm");
  const program = join(cache, "nfpm");
  if (existsSync(program)) return program;
  await mkdir(dirname(program), { recursive: true });
  execFileSync(
    "go",
    ["build", "-trimpath", "-ldflags", "-s -w", "-o", program, "github.com/goreleaser/nfpm/v2/cmd/nfpm"],
    {
      cwd: sources,
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  await chmod(program, 0o755);
  return program;
}
