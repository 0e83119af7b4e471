import { execFileSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import {
  chromiumProgram,
  clientPrograms,
  consumerPrograms,
  filesystemSuites,
  giteaProgram,
  headlessChromiumProgram,
  onPath,
  newerGitFolder,
  opensshRegressFolder,
  otelcolProgram,
  postgresFolder,
  helmProgram,
  kubernetesSchemas,
  promtoolProgram,
  readersPython,
  s3Program,
  schemathesisPython,
  slapdProgram,
  sshdProgram,
  softHsmModule,
  vaultPrograms,
} from "@devplat/testkit";

/** Protocol v2 with SHA-256 repositories, `--negotiate-only` and bitmaps as the tests use them. */
const OLDEST_GIT = [2, 39] as const;

/** Programs that the tests need and this machine lacks, one phrase each. */
export function missingPeers(): string[] {
  return [
    gitProblem(),
    problem("Postgres's server programs", postgresFolder),
    problem("Chromium", chromiumProgram),
    problem("Chromium's headless shell", headlessChromiumProgram),
    problem("the Vault build", vaultPrograms),
    problem("the Gitea build", giteaProgram),
    problem("the versitygw build", () => s3Program("versitygw")),
    problem("the MinIO build", () => s3Program("minio")),
    problem("slapd", slapdProgram),
    problem("sshd", sshdProgram),
    problem("SoftHSM", softHsmModule),
    problem("OpenSSL's engine for PKCS#11", pkcs11Engine),
    problem("the builds of git clients", clientPrograms),
    problem("the test suites of file systems", filesystemSuites),
    problem("the runtimes and bundlers", consumerPrograms),
    problem("promtool", promtoolProgram),
    problem("the Helm build", helmProgram),
    problem("the build of the OpenTelemetry Collector", otelcolProgram),
    problem("the schemas of Kubernetes", kubernetesSchemas),
    problem("schemathesis", schemathesisPython),
    problem("the readers of configuration files", readersPython),
    problem("the newer git", newerGitFolder),
    problem("OpenSSH's test scripts", opensshRegressFolder),
    ...[
      "Xvfb",
      "curl",
      "dbus-daemon",
      "dunst",
      "notify-send",
      "xclip",
      "xdg-open",
      "xsel",
      "java",
      "openssl",
      "pkcs11-tool",
      "ps",
      "script",
      "setpriv",
      "softhsm2-util",
      "ssh",
      "swtpm",
      "zsh",
      "fish",
      "gh",
      "podman",
      "rootlesskit",
      "slirp4netns",
      "newuidmap",
      "docker-compose",
      "kubectl",
      "rsync",
      "direnv",
      "vim",
      "nano",
      "emacs",
    ].map((name) => (onPath(name) === undefined ? name : undefined)),
  ].filter((found) => found !== undefined);
}

function problem(name: string, find: () => unknown): string | undefined {
  try {
    find();
    return undefined;
  } catch {
    return name;
  }
}

/** Where Debian puts it, as the daemon looks for it. */
function pkcs11Engine(): void {
  if (globSync("/usr/lib*/*/engines-3/pkcs11.so").length === 0) throw new Error("not there");
}

function gitProblem(): string | undefined {
  const wanted = `git ${OLDEST_GIT.join(".")} or later`;
  if (onPath("git") === undefined) return wanted;
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(ask("--version")) ?? []).slice(1).map(Number);
  if (major < OLDEST_GIT[0] || (major === OLDEST_GIT[0] && minor < OLDEST_GIT[1])) return wanted;
  return existsSync(join(ask("--exec-path"), "git-http-backend")) ? undefined : "git http-backend";
}

function ask(flag: string): string {
  return execFileSync("git", [flag], { encoding: "utf8" }).trim();
}
