/** `npm run release`: everything that people download, from one commit. `npm run release -- --help` lists the options. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import manifest from "../../apps/svc/package.json" with { type: "json" };
import { ownPlatform } from "../build/single/platforms.ts";
import { BUNDLERS, type ProgramName } from "../build/single/program.ts";
import { singleFile } from "../build/single/single-file.ts";
import { tarGz, zip, type ArchiveFile } from "./archive.ts";
import { bundledPackages } from "./bundled-packages.ts";
import { documentsOf } from "./documents.ts";
import { archiveName, manifestsOf } from "./manifests.ts";
import { HELP, readOptions, type ReleaseOptions } from "./options.ts";
import { buildNfpm, makePackages } from "./packages.ts";
import { provenance } from "./provenance.ts";
import { runtimeOf, type Runtime } from "./runtimes.ts";
import { sbom } from "./sbom.ts";
import { ROOT } from "../build/root.ts";
import { readSource, releaseCache, type Source } from "./source.ts";
import { sign, sumsOf, sumsText } from "./sums.ts";
import { writeTarballs } from "./tarballs.ts";

const say = (text: string): void => void process.stdout.write(`${text}\n`);

try {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) say(HELP);
  else await release(options);
} catch (error) {
  process.stderr.write(`release: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function release(options: ReleaseOptions): Promise<void> {
  const { out, programs, platforms, formats } = options;
  const version = options.version ?? manifest.version;
  const source = readSource();
  if (source.isChanged && !options.allowChanges) {
    throw new Error(
      "Cannot make a release: files differ from the commit. Commit them, or allow it by --allow-changes",
    );
  }
  await mkdir(out, { recursive: true });
  if ((await readdir(out)).length > 0)
    throw new Error(`Cannot make a release in ${out}: the folder is not empty`);
  const work = await mkdtemp(join(tmpdir(), "release-"));
  try {
    const runtimes = new Map<string, Runtime>();
    for (const platform of platforms) runtimes.set(platform.name, await runtimeOf(platform));
    const nfpm = formats.length === 0 ? undefined : await buildNfpm(await nfpmCache());
    for (const name of programs) {
      await releaseProgram(name, { ...options, version, source, runtimes, nfpm, folder: join(work, name) });
    }
    for (const file of await writeTarballs(out, source.epoch)) say(file);
    await writeLists({ options, version, source, runtimes });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

interface ProgramParts extends Omit<ReleaseOptions, "version"> {
  readonly version: string;
  readonly source: Source;
  readonly runtimes: ReadonlyMap<string, Runtime>;
  readonly nfpm: string | undefined;
  /** For files that do not stay. */
  readonly folder: string;
}

/** Makes archives, packages and the list of components of one program. */
async function releaseProgram(name: ProgramName, parts: ProgramParts): Promise<void> {
  const { out, version, source, platforms, runtimes, nfpm, folder, formats, pgpKey } = parts;
  const { epoch } = source;
  const bundles = join(folder, "bundles");
  await mkdir(bundles, { recursive: true });
  const bundle = await BUNDLERS[name](bundles, version);
  const packages = await bundledPackages(bundle.metafiles);
  const others = new Set([...runtimes.values()].map((runtime) => runtime.version));
  others.delete(process.versions.node);
  const otherNodes = [...others].toSorted();
  const nodes = [process.versions.node, ...otherNodes];
  const documents = await documentsOf(name, { version, epoch, packages, nodes });
  const components = sbom({ name, version, epoch, packages, runtime: process.versions, otherNodes });
  await writeFile(join(out, `${name}-${version}.cdx.json`), components);
  for (const platform of platforms) {
    const runtime = runtimes.get(platform.name);
    if (runtime === undefined) throw new Error(`Cannot build for ${platform.name}: its Node is missing`);
    const program = join(folder, `${name}-${platform.name}`);
    const isOwnPlatform = platform.name === ownPlatform().name;
    await singleFile({ ...bundle, node: runtime.node, isOwnPlatform }, program);
    const file = archiveName(name, version, platform.name);
    await writeFile(
      join(out, file),
      await archived(file, program, `${name}${platform.ending}`, documents, epoch),
    );
    say(file);
    if (nfpm === undefined || !platform.name.startsWith("linux-")) continue;
    const maintainer = parts.maintainer ?? authorOfCommit();
    const packageParts = {
      name,
      version,
      epoch,
      platform: platform.name,
      program,
      documents,
      maintainer,
      pgpKey,
    };
    await makePackages(nfpm, packageParts, { folder: join(folder, `files-${platform.name}`), out, formats });
    say(`${name}: ${formats.join(", ")} for ${platform.name}`);
  }
}

async function archived(
  file: string,
  program: string,
  programName: string,
  documents: ReadonlyMap<string, Buffer>,
  epoch: number,
): Promise<Buffer> {
  const folder = file.replace(/\.(?:tar\.gz|zip)$/, "");
  const files: ArchiveFile[] = [
    { path: `${folder}/${programName}`, content: await readFile(program), isProgram: true },
    ...[...documents].map(([path, content]) => ({ path: `${folder}/${path}`, content, isProgram: false })),
  ];
  return file.endsWith(".zip") ? zip(files, epoch) : tarGz(files, epoch);
}

interface ListParts {
  readonly options: ReleaseOptions;
  readonly version: string;
  readonly source: Source;
  readonly runtimes: ReadonlyMap<string, Runtime>;
}

/** Writes provenance, manifests, sums and signature. */
async function writeLists({ options, version, source, runtimes }: ListParts): Promise<void> {
  const { out, programs, platforms, url, publisher, key } = options;
  await cp(join(import.meta.dirname, "verify-release.sh"), join(out, "verify-release.sh"));
  const files = await sumsOf(out, await readdir(out));
  const text = provenance({
    source,
    version,
    files,
    runtimes: platforms.map(({ name, runtime }) => ({
      package: runtime,
      version: runtimes.get(name)?.version ?? "",
      integrity: runtimes.get(name)?.integrity ?? "",
    })),
    tools: { node: process.versions.node, nfpm: await nfpmVersion() },
  });
  const provenanceFile = `release-${version}.intoto.json`;
  await writeFile(join(out, provenanceFile), text);
  const sums = [...files, ...(await sumsOf(out, [provenanceFile]))].toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  await writeFile(join(out, "SHA256SUMS"), sumsText(sums));
  if (key !== undefined) await sign(join(out, "SHA256SUMS"), key);
  else say("This release is not signed: users cannot check where it is from. Sign it with --key");
  if (url === undefined) return;
  for (const name of programs) {
    const parts = { name, version, epoch: source.epoch, url, publisher, sums };
    for (const [path, content] of manifestsOf(parts)) {
      const file = join(out, "manifests", path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, content);
    }
  }
}

/** Folder for nfpm as the pinned versions make it. */
async function nfpmCache(): Promise<string> {
  const pinned = await readFile(join(ROOT, "tools/nfpm/go.sum"));
  const hash = createHash("sha256").update(pinned).digest("hex").slice(0, 12);
  return join(releaseCache(), `nfpm-${hash}`);
}

async function nfpmVersion(): Promise<string> {
  const [, found = ""] =
    /goreleaser\/nfpm\/v2 (\S+)/.exec(await readFile(join(ROOT, "tools/nfpm/go.mod"), "utf8")) ?? [];
  return found;
}

function authorOfCommit(): string {
  return execFileSync("git", ["log", "-1", "--format=%an <%ae>"], { cwd: ROOT, encoding: "utf8" }).trim();
}
