import { chmod, chown, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BOX_IMAGE, boxArchive, insist, type ContainerEngine } from "./container-engine.ts";
import { TestkitError } from "./errors.ts";
import { onPath } from "./peer-programs.ts";
import { startPeer } from "./peer.ts";
import { run, type Finished } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** Debian's package docker.io has the script of rootless Docker as an example. */
const DOCKERD_ROOTLESS = "/usr/share/docker.io/contrib/dockerd-rootless.sh";
const NAME = "ordinary";
/** Belongs to nobody on the machines of the tests. */
const UID = 47_200;
/** Numbers of the users in this user's containers (subuid(5)). */
const SUBORDINATE = "ordinary:1000000:65536\n";
/** Major and minor number of /dev/net/tun (the kernel's devices.txt). */
const TUN = ["10", "200"] as const;

/**
 * An ordinary user with subordinate ids, who exists only in a mount namespace of the test. `/etc/docker` and `/etc/containers`
 * are folders of the test there.
 */
export interface OrdinaryUser {
  readonly uid: number;
  readonly home: string;
  /** The user's runtime folder, on a tmpfs. */
  readonly runtime: string;
  /** The environment of a login. */
  readonly env: NodeJS.ProcessEnv;
  /** Words before each command that this user runs. */
  readonly words: readonly string[];
  /** A program that runs the one given as this user, with the same arguments. */
  launcher(program: string): Promise<string>;
  /** Runs a command as this user. */
  run(command: string, ...args: readonly string[]): Promise<Finished>;
  /** Runs a command as root, with the same files in `/etc`. */
  asRoot(command: string, ...args: readonly string[]): Promise<Finished>;
  stop(): Promise<void>;
}

/** Needs root. */
export async function startOrdinaryUser(): Promise<OrdinaryUser> {
  const folder = await tempFolder("user");
  await chmod(folder.path, 0o755);
  const at = (name: string): string => join(folder.path, name);
  const home = at("home");
  const runtime = await mkdtemp("/dev/shm/user-");
  const own = async (path: string): Promise<void> => {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await chown(path, UID, UID);
  };
  for (const path of [home, runtime]) await own(path);
  await mkdir(at("etc/docker"), { recursive: true });
  await mkdir(at("etc/containers"), { recursive: true });
  await copyFile("/etc/containers/policy.json", at("etc/containers/policy.json"));
  const accounts = await readFile("/etc/passwd", "utf8");
  const groups = await readFile("/etc/group", "utf8");
  await writeFile(at("etc/passwd"), `${accounts}${NAME}:x:${UID}:${UID}::${home}:/bin/sh\n`);
  await writeFile(at("etc/group"), `${groups}${NAME}:x:${UID}:\n`);
  for (const name of ["subuid", "subgid"]) await writeFile(at(`etc/${name}`), SUBORDINATE);
  // Every user may open it, as with udev.
  const device = await run("mknod", ["--mode=0666", at("tun"), "c", ...TUN]);
  if (device.code !== 0) throw TestkitError.failed("mknod", device.stderr);
  await mkdir("/etc/docker", { recursive: true });
  const binds = [
    ...["passwd", "group", "subuid", "subgid", "docker", "containers"].map((name) => [
      at(`etc/${name}`),
      `/etc/${name}`,
    ]),
    [at("tun"), "/dev/net/tun"],
  ];
  const holder = await startPeer("mount namespace", async () => ({
    command: "unshare",
    args: [
      "--mount",
      "sh",
      "-ec",
      'while [ $# -gt 0 ]; do mount --bind "$1" "$2"; shift 2; done; echo ready; exec sleep infinity',
      "sh",
      ...binds.flat(),
    ],
    isReady: (output) => output.includes("ready"),
  }));
  const inside = ["nsenter", "--mount", "--target", String(holder.pid), "--"];
  const words = [...inside, "setpriv", `--reuid=${UID}`, `--regid=${UID}`, "--clear-groups", "--"];
  // The networks of rootlesskit are made with programs of root.
  const env = {
    PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`,
    HOME: home,
    USER: NAME,
    XDG_RUNTIME_DIR: runtime,
  };
  const start = async (
    before: readonly string[],
    command: string,
    args: readonly string[],
  ): Promise<Finished> => {
    const [program = "", ...rest] = before;
    return await run(program, [...rest, command, ...args], { env, cwd: "/" });
  };
  return {
    uid: UID,
    home,
    runtime,
    env,
    words,
    launcher: async (program) => {
      const path = at("launcher");
      await writeFile(path, `#!/bin/sh\nexec ${[...words, program].join(" ")} "$@"\n`, { mode: 0o755 });
      return path;
    },
    run: (command, ...args) => start(words, command, args),
    asRoot: (command, ...args) => start(inside, command, args),
    stop: async () => {
      await holder.stop();
      await rm(runtime, { recursive: true, force: true });
      await folder.remove();
    },
  };
}

/**
 * Starts the dockerd of an ordinary user, by RootlessKit.
 * @throws TestkitError `missing` without Debian's packages docker.io, rootlesskit, slirp4netns and uidmap
 */
export async function startRootlessDockerd(user: OrdinaryUser): Promise<ContainerEngine> {
  if (!existsSync(DOCKERD_ROOTLESS)) throw TestkitError.missing(DOCKERD_ROOTLESS);
  for (const name of ["rootlesskit", "slirp4netns", "newuidmap"])
    if (onPath(name) === undefined) throw TestkitError.missing(name);
  const env = { ...user.env, DOCKER_HOST: `unix://${join(user.runtime, "docker.sock")}` };
  const [program = "", ...rest] = user.words;
  const cli = (...args: readonly string[]): Promise<Finished> =>
    run(program, [...rest, "docker", ...args], { env, cwd: "/" });
  const peer = await startPeer("rootless dockerd", async () => ({
    command: program,
    args: [...rest, "sh", DOCKERD_ROOTLESS, "--bridge=none", "--iptables=false"],
    options: { env, cwd: "/" },
    isReady: async (output) => output.includes("API listen on") && (await cli("version")).code === 0,
  }));
  const ok = insist("docker", cli);
  await ok("import", await imageOf(user), BOX_IMAGE);
  return {
    configuration: join(user.home, ".config/docker"),
    run: cli,
    ok,
    stop: async () => {
      await peer.stop();
    },
  };
}

/**
 * Podman of an ordinary user.
 * @throws TestkitError `missing` without Debian's packages podman, uidmap and busybox-static
 */
export async function startRootlessPodman(user: OrdinaryUser): Promise<ContainerEngine> {
  for (const name of ["podman", "newuidmap"])
    if (onPath(name) === undefined) throw TestkitError.missing(name);
  const flags = ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file"];
  const cli = (...args: readonly string[]): Promise<Finished> => user.run("podman", ...flags, ...args);
  const ok = insist("podman", cli);
  await ok("import", await imageOf(user), BOX_IMAGE);
  return {
    configuration: join(user.home, ".config/containers"),
    run: cli,
    ok,
    stop: async () => {
      await cli("rm", "--all", "--force", "--time", "0");
      // Ends the process that holds the user namespace.
      await cli("system", "migrate");
    },
  };
}

/** The archive of the image, readable for the user. */
async function imageOf(user: OrdinaryUser): Promise<string> {
  const folder = await mkdtemp(join(user.home, "image-"));
  const archive = await boxArchive(folder);
  for (const path of [folder, archive]) await chown(path, user.uid, user.uid);
  return archive;
}
