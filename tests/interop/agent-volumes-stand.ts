import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { chown, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isProcess } from "@devplat/base/process-signal";
import {
  AGENT_LAUNCHER,
  run,
  tempFolder,
  until,
  type ContainerEngine,
  type OrdinaryUser,
  type TempFolder,
} from "@devplat/testkit";
import type { AgentStatus } from "../../apps/agent/src/status.ts";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";

/** A home with a runtime folder on a tmpfs, and a daemon with container volumes. */
export class VolumesStand {
  readonly home: Home;
  readonly #runtime: string;
  readonly #user: OrdinaryUser | undefined;
  readonly #folder: TempFolder | undefined;
  #agent: RunningAgent | undefined;

  private constructor(home: Home, runtime: string, more: { user?: OrdinaryUser; folder?: TempFolder }) {
    this.home = home;
    this.#runtime = runtime;
    this.#user = more.user;
    this.#folder = more.folder;
  }

  /**
   * @param engine whose configuration folder the agent writes to
   * @param launcher of the daemon
   */
  static async make(
    engine?: { docker?: ContainerEngine; podman?: ContainerEngine },
    launcher = AGENT_LAUNCHER,
  ): Promise<VolumesStand> {
    const folder = await tempFolder("agent-volumes");
    // On a tmpfs, as the runtime folder of a user is.
    const runtime = mkdtempSync("/dev/shm/volumes-");
    const env: NodeJS.ProcessEnv = {
      XDG_RUNTIME_DIR: runtime,
      AGENT_DOCKER_PLUGINS: join(folder.path, "plugins"),
      AGENT_PODMAN_CONFIG: join(folder.path, "podman"),
    };
    if (engine?.docker !== undefined)
      env["AGENT_DOCKER_PLUGINS"] = join(engine.docker.configuration, "plugins");
    if (engine?.podman !== undefined)
      env["AGENT_PODMAN_CONFIG"] = join(engine.podman.configuration, "containers.conf.d");
    return new VolumesStand(new Home(folder.path, env, launcher), runtime, { folder });
  }

  /** A daemon that an ordinary user runs, with the default places. */
  static async ofUser(user: OrdinaryUser): Promise<VolumesStand> {
    const home = new Home(user.home, user.env, await user.launcher(AGENT_LAUNCHER));
    return new VolumesStand(home, user.runtime, { user });
  }

  get socket(): string {
    return join(this.#runtime, "daemon/docker.sock");
  }

  /** Path below the folder of the files of volumes. */
  volume(path: string): string {
    return join(this.#runtime, "daemon/volumes", path);
  }

  get agent(): RunningAgent {
    return this.#agent ?? assert.fail("the daemon does not run");
  }

  async configure(store: string, docker: string): Promise<void> {
    const text = `store: ${store}\napi: { enabled: true }\ndocker: ${docker}\n`;
    const path = await this.home.configure(text);
    if (this.#user === undefined) return;
    const { uid } = this.#user;
    for (const each of [path, dirname(path), dirname(dirname(path))]) await chown(each, uid, uid);
  }

  async start(): Promise<void> {
    this.#agent = await daemon(this.home, async () => (await this.call("/Plugin.Activate")).status === 200);
  }

  async stop(): Promise<void> {
    await this.#agent?.stop();
    this.#agent = undefined;
  }

  /** Ends the daemon without giving it a chance. */
  async kill(): Promise<void> {
    const pid = this.agent.pid ?? assert.fail();
    process.kill(pid, "SIGKILL");
    await until(() => !isProcess(pid));
    this.#agent = undefined;
  }

  async remove(): Promise<void> {
    await this.stop();
    if (this.#user === undefined) await rm(this.#runtime, { recursive: true, force: true });
    await this.#folder?.remove();
  }

  /** One call of the plugin, by curl. */
  async call(
    path: string,
    body: object | string = {},
    ...more: string[]
  ): Promise<{ status: number; text: string }> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const args = [
      "--silent",
      "--unix-socket",
      this.socket,
      "--max-time",
      "60",
      "--write-out",
      "\n%{http_code}",
      "--data-binary",
      "@-",
      ...more,
    ];
    const { stdout } = await run("curl", [...args, `http://localhost${path}`], { input: text });
    const at = stdout.lastIndexOf("\n");
    return { status: Number(stdout.slice(at + 1)), text: stdout.slice(0, at) };
  }

  /** A call that has to succeed. */
  async ok(path: string, body: object): Promise<void> {
    const { status, text } = await this.call(path, body);
    assert.equal(status, 200, text);
  }

  /** Resolves when the daemon has signed in to its store. */
  async signedIn(): Promise<void> {
    await until(async () => {
      await this.ok("/VolumeDriver.Create", { Name: "trial", Opts: { secrets: "demo/" } });
      const { status } = await this.call("/VolumeDriver.Mount", { Name: "trial", ID: "trial" });
      await this.ok("/VolumeDriver.Unmount", { Name: "trial", ID: "trial" });
      return status === 200;
    });
    await this.ok("/VolumeDriver.Remove", { Name: "trial" });
  }

  async status(): Promise<NonNullable<AgentStatus["docker"]>> {
    const status = JSON.parse(await this.home.ok("status", "--json")) as AgentStatus;
    return status.docker ?? assert.fail("the status has no container volumes");
  }

  async volumeStatus(name: string): Promise<NonNullable<AgentStatus["docker"]>["volumes"][number]> {
    return (
      (await this.status()).volumes.find((volume) => volume.name === name) ?? assert.fail(`no volume ${name}`)
    );
  }

  put(key: string, ...fields: string[]): Promise<string> {
    return this.home.ok("secrets", "put", key, "--no-wait", ...fields);
  }
}
