import { copyFile, mkdir, readFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { BOX_IMAGE, boxArchive, insist, type ContainerEngine } from "./container-engine.ts";
import { onPath } from "./peer-programs.ts";
import { startPeer, type Peer } from "./peer.ts";
import { run, type Finished } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

export interface Dockerd extends ContainerEngine {
  /** Socket of its API. */
  readonly socket: string;
  readonly pid: number;
  output(): string;
  /** Ends dockerd and containerd by SIGKILL. Containers may go on. */
  kill(): Promise<void>;
  /** Ends dockerd by SIGTERM, and with it the containers. */
  pause(): Promise<void>;
  /** Starts it again on the same folders. */
  resume(): Promise<void>;
}

/**
 * Starts dockerd, in a mount namespace in which `/etc/docker` is a folder of the test. Needs root.
 * @throws TestkitError `missing` without Debian's packages docker.io and busybox-static
 */
export async function startDockerd(): Promise<Dockerd> {
  const dockerd = onPath("dockerd") ?? "/usr/sbin/dockerd";
  const folder = await tempFolder("dockerd");
  const at = (name: string): string => join(folder.path, name);
  const configuration = at("etc");
  await mkdir(join(configuration, "plugins"), { recursive: true });
  await mkdir("/etc/docker", { recursive: true });
  const socket = at("docker.sock");
  const env = {
    PATH: process.env["PATH"],
    HOME: folder.path,
    DOCKER_CONFIG: at("client"),
    DOCKER_HOST: `unix://${socket}`,
  };
  const flags = [
    "--bridge=none",
    "--iptables=false",
    "--data-root",
    at("data"),
    "--exec-root",
    at("exec"),
    "--pidfile",
    at("pid"),
    "--host",
    `unix://${socket}`,
  ];
  const cli = (...args: readonly string[]): Promise<Finished> => run("docker", args, { env });
  const begin = (): Promise<Peer> =>
    startPeer("dockerd", async () => ({
      command: "unshare",
      args: [
        "--mount",
        "sh",
        "-c",
        'mount --bind "$1" /etc/docker && shift && exec "$@"',
        "sh",
        configuration,
        dockerd,
        ...flags,
      ],
      options: { env },
      isReady: async (output) => output.includes("API listen on") && (await cli("version")).code === 0,
    }));
  let peer = await begin();
  const ok = insist("docker", cli);
  await ok("import", await boxArchive(folder.path), BOX_IMAGE);
  return {
    configuration,
    socket,
    get pid() {
      return peer.pid;
    },
    output: () => peer.output(),
    run: cli,
    ok,
    kill: async () => {
      process.kill(peer.pid, "SIGKILL");
      await peer.ended;
      const pidFile = at("exec/containerd/containerd.pid");
      const containerd = Number(await readFile(pidFile, "utf8").catch(() => ""));
      if (containerd > 1) process.kill(containerd, "SIGKILL");
      // Until its parent collects it, it counts as running: the next dockerd would wait 15 s for its answer, and fail.
      await rm(pidFile, { force: true });
    },
    pause: async () => void (await peer.stop()),
    resume: async () => {
      peer = await begin();
    },
    stop: async () => {
      // A graceful end ends containers and containerd too, also those that an earlier kill has left.
      if ((await cli("version")).code !== 0) peer = await begin();
      await peer.stop();
      await endOrphans(folder.path);
      await folder.remove();
    },
  };
}

/** Ends shims that a killed containerd has forgotten. @param folder of this engine */
async function endOrphans(folder: string): Promise<void> {
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const [program = "", ...args] = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split(
      "\0",
    );
    const isOurs = /containerd-shim/.test(program) && args.some((each) => each.startsWith(`${folder}/`));
    if (isOurs) await run("kill", ["-KILL", pid]);
  }
}

/**
 * Prepares Podman as root, in a mount namespace in which `/etc/containers` is a folder of the test.
 * @throws TestkitError `missing` without Debian's packages podman and busybox-static
 */
export async function startPodman(): Promise<ContainerEngine> {
  const folder = await tempFolder("podman");
  const at = (name: string): string => join(folder.path, name);
  const configuration = at("etc");
  await mkdir(join(configuration, "containers.conf.d"), { recursive: true });
  await copyFile("/etc/containers/policy.json", join(configuration, "policy.json"));
  const env = { PATH: process.env["PATH"], HOME: folder.path };
  // It holds the namespace, in which every command runs.
  const holder = await startPeer("mount namespace", async () => ({
    command: "unshare",
    args: [
      "--mount",
      "sh",
      "-c",
      'mount --bind "$1" /etc/containers && echo ready && exec sleep infinity',
      "sh",
      configuration,
    ],
    isReady: (output) => output.includes("ready"),
  }));
  const flags = [
    "--root",
    at("root"),
    "--runroot",
    at("run"),
    "--storage-driver",
    "vfs",
    "--cgroup-manager",
    "cgroupfs",
    "--events-backend",
    "file",
  ];
  const cli = (...args: readonly string[]): Promise<Finished> =>
    run("nsenter", ["--mount", "--target", String(holder.pid), "podman", ...flags, ...args], { env });
  const ok = insist("podman", cli);
  await ok("import", await boxArchive(folder.path), BOX_IMAGE);
  return {
    configuration,
    run: cli,
    ok,
    stop: async () => {
      await cli("rm", "--all", "--force", "--time", "0");
      await holder.stop();
      await folder.remove();
    },
  };
}
