import { createHash } from "node:crypto";
import { access, chmod, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { peerCache, run } from "@devplat/testkit";

/** Release of Debian that the packages are tried on. */
const SUITE = "bookworm";
/** Beyond the required packages: a system that boots, with sessions of users, FUSE, and the programs of the tests. */
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
  "procps",
  "systemd",
  "systemd-sysv",
] as const;
/** Downloads and unpacks 170 packages. In milliseconds. */
const BUILD_LIMIT_MS = 900_000;

/**
 * A tree of Debian that boots. It is built once, with the mirror that this machine uses itself. It must not be changed.
 *
 * @returns its absolute path
 */
export async function debianTree(): Promise<string> {
  const key = createHash("sha256")
    .update(JSON.stringify([SUITE, PACKAGES]))
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

async function must(command: string, args: readonly string[], timeoutMs: number): Promise<void> {
  const { code, stdout, stderr } = await run(command, args, { timeoutMs });
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${(stderr || stdout).slice(-2000)}`);
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
