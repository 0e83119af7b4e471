import { createHash } from "node:crypto";
import { access, chmod, mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { peerCache, run } from "@devplat/testkit";

/** Release of Debian that the packages are tried on. */
const SUITE = "bookworm";
/**
 * Beyond the required packages: a system that boots, with sessions of users, FUSE, and the programs of the tests. Those of rpm
 * and Arch install their packages without the packages of their systems.
 */
const PACKAGES = [
  "ca-certificates",
  "curl",
  "dbus",
  "dbus-user-session",
  "fuse3",
  "git",
  "iproute2",
  "libpam-systemd",
  "openssh-client",
  "pacman-package-manager",
  "procps",
  "rpm",
  "systemd",
  "systemd-sysv",
] as const;
/** Not installed, but in the repository of the machine: a package that is installed there can ask apt for them. */
const REPOSITORY = ["libatomic1"] as const;
/** Folder of that repository in the machine, which has no network. */
const REPOSITORY_FOLDER = "srv/debian";
/** Downloads and unpacks 170 packages. In milliseconds. */
const BUILD_LIMIT_MS = 900_000;

/**
 * A tree of Debian that boots. It is built once, with the mirror that this machine uses itself. It must not be changed.
 *
 * @returns its absolute path
 */
export async function debianTree(): Promise<string> {
  const key = createHash("sha256")
    .update(JSON.stringify([SUITE, PACKAGES, REPOSITORY]))
    .digest("hex")
    .slice(0, 12);
  const path = join(peerCache(), `debian-${SUITE}-${key}`);
  if (await isThere(path)) return path;
  await mkdir(peerCache(), { recursive: true });
  // Built beside it, so that a build that is interrupted leaves no half of a tree.
  const folder = await mkdtemp(`${path}.`);
  try {
    const args = ["--variant=minbase", `--include=${PACKAGES.join(",")}`, SUITE, folder, ...(await mirror())];
    await must("debootstrap", args, BUILD_LIMIT_MS);
    await addRepository(folder);
    await prepare(folder);
    await rename(folder, path).catch(async (error: unknown) => {
      // Another run was faster.
      if (!(await isThere(path))) throw error;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return path;
}

/** The mirror of Debian in the configuration of apt. Empty: debootstrap uses its own default. */
async function mirror(): Promise<string[]> {
  const format = "$(SITE) $(ORIGIN) $(CODENAME)";
  const { stdout } = await run("apt-get", ["indextargets", "--format", format, "Created-By: Packages"]);
  const found = stdout.split("\n").find((line) => line.endsWith(` Debian ${SUITE}`));
  return found?.split(" ").slice(0, 1) ?? [];
}

/** Downloads packages, and makes them the only ones that apt knows. */
async function addRepository(tree: string): Promise<void> {
  const folder = join(tree, REPOSITORY_FOLDER);
  await mkdir(folder, { recursive: true });
  const limit = BUILD_LIMIT_MS;
  await must("chroot", [tree, "apt-get", "-q", "update"], limit);
  const download = `cd /${REPOSITORY_FOLDER} && apt-get -q -o APT::Sandbox::User=root download ${REPOSITORY.join(" ")}`;
  await must("chroot", [tree, "sh", "-c", download], limit);
  const entries: string[] = [];
  for (const file of await readdir(folder)) {
    const content = await readFile(join(folder, file));
    const fields = await must("dpkg-deb", ["--field", join(folder, file)], limit);
    const hash = createHash("sha256").update(content).digest("hex");
    entries.push(`${fields.trim()}\nFilename: ./${file}\nSize: ${content.length}\nSHA256: ${hash}\n`);
  }
  await writeFile(join(folder, "Packages"), entries.join("\n"));
  await writeFile(join(tree, "etc/apt/sources.list"), `deb [trusted=yes] file:/${REPOSITORY_FOLDER} ./\n`);
  await rm(join(tree, "var/lib/apt/lists"), { recursive: true });
}

/** Settings that a tree needs to boot without a network, a console and a person. */
async function prepare(tree: string): Promise<void> {
  await chmod(tree, 0o755);
  await rm(join(tree, "var/cache/apt"), { recursive: true });
  await writeFile(join(tree, "etc/machine-id"), "");
  await mkdir(join(tree, "etc/systemd/journald.conf.d"), { recursive: true });
  // The tests read all of it. A limit would drop lines of a busy service.
  await writeFile(
    join(tree, "etc/systemd/journald.conf.d/tests.conf"),
    "[Journal]\nRateLimitBurst=0\nStorage=volatile\n",
  );
  const off = [
    "getty@tty1",
    "console-getty",
    "systemd-networkd-wait-online",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
  ];
  for (const unit of off) await must("systemctl", [`--root=${tree}`, "mask", unit], 60_000);
}

/** Output of a command that succeeds. */
async function must(command: string, args: readonly string[], timeoutMs: number): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, { timeoutMs });
  if (code === 0) return stdout;
  throw new Error(`${command} ended with ${code}: ${(stderr || stdout).slice(-2000)}`);
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
