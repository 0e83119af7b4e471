import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { Program, untilReady } from "../program.ts";

/** Milliseconds before an instance that has ended is started again, as a service manager would do. */
const RESTART_MS = 5000;

export interface InstanceParts {
  /** One letter. */
  readonly name: string;
  /** Root folder of the repository. */
  readonly root: string;
  /** Folder for its data, its log and its pid file. It begins empty. */
  readonly folder: string;
  readonly port: number;
  readonly metricsPort: number;
  /** Settings that all instances share. */
  readonly env: Readonly<Record<string, string>>;
}

/** One instance of the service in development mode. It is started again when it ends. */
export class Instance {
  readonly #parts: InstanceParts;
  #program: Program | undefined;
  #stopped = false;

  constructor(parts: InstanceParts) {
    this.#parts = parts;
  }

  get name(): string {
    return this.#parts.name;
  }

  get port(): number {
    return this.#parts.port;
  }

  get metricsPort(): number {
    return this.#parts.metricsPort;
  }

  /** File with the id of the process that runs now. */
  get pidFile(): string {
    return join(this.#parts.folder, "pid");
  }

  /** Starts it with an empty cache, and waits until it is ready. */
  async start(): Promise<void> {
    await rm(this.#parts.folder, { recursive: true, force: true });
    await mkdir(this.#parts.folder, { recursive: true, mode: 0o700 });
    await this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#program?.stop();
    await this.#program?.ended;
  }

  async #run(): Promise<void> {
    const { name, root, folder, port, metricsPort, env } = this.#parts;
    const own = Object.entries(process.env).filter(([key]) => !key.startsWith("SVC_"));
    const program = new Program(
      `svc ${name}`,
      {
        command: join(root, "node_modules/.bin/svc"),
        args: ["serve", "--migrate"],
        env: {
          ...Object.fromEntries(own),
          SVC_DEV_MODE: "true",
          SVC_SERVER_LISTEN: `127.0.0.1:${port}`,
          SVC_METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
          SVC_DATA_DIR: join(folder, "data"),
          SVC_CACHE_ENABLED: "true",
          SVC_LOG_FORMAT: "text",
          ...env,
        },
        url: `http://127.0.0.1:${port}`,
        settings: [],
      },
      join(folder, "svc.log"),
    );
    this.#program = program;
    await writeFile(this.pidFile, `${program.pid}\n`);
    void program.ended.then(() => this.#restart());
    if (!(await untilReady(`http://127.0.0.1:${port}/readyz`, program.ended))) {
      throw new Error(`the instance ${name} does not start; its log is ${join(folder, "svc.log")}`);
    }
  }

  async #restart(): Promise<void> {
    if (this.#stopped) return;
    process.stderr.write(`svc ${this.name} | has ended; it starts again in ${RESTART_MS / 1000} s\n`);
    await after(RESTART_MS, undefined, { ref: false });
    if (this.#stopped) return;
    await this.#run().catch((error: unknown) => {
      process.stderr.write(`svc ${this.name} | ${error instanceof Error ? error.message : String(error)}\n`);
    });
  }
}
