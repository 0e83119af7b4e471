import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { Program, untilReady } from "../program.ts";

/** Seconds before an instance that has ended is started again, as a service manager would do. */
export const RESTART_SECONDS = 5;

export interface InstanceParts {
  /** One letter. */
  readonly name: string;
  /** Root folder of the repository. */
  readonly root: string;
  /** Folder for its data. It begins empty. */
  readonly folder: string;
  readonly logFile: string;
  readonly port: number;
  readonly metricsPort: number;
  /** Settings that all instances share. */
  readonly shared: Readonly<Record<string, string>>;
  /** Called as soon as it has another process. */
  readonly onProcess: () => Promise<void>;
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

  /** Id of the process that runs now, or has ended last; undefined before the start. */
  get pid(): number | undefined {
    return this.#program?.pid;
  }

  /** Its settings, which are all environment variables. */
  get settings(): Readonly<Record<string, string>> {
    const { folder, port, metricsPort, shared } = this.#parts;
    return {
      SVC_DEV_MODE: "true",
      SVC_SERVER_LISTEN: `127.0.0.1:${port}`,
      SVC_METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
      SVC_DATA_DIR: join(folder, "data"),
      SVC_CACHE_ENABLED: "true",
      SVC_LOG_FORMAT: "text",
      ...shared,
    };
  }

  /** Starts it with an empty cache, and waits until it is ready. */
  async start(): Promise<void> {
    await rm(this.#parts.folder, { recursive: true, force: true });
    await mkdir(this.#parts.folder, { recursive: true, mode: 0o700 });
    await this.#run();
  }

  async stop(): Promise<void> {
    if (this.#program === undefined) return;
    this.#stopped = true;
    this.#program.stop();
    await this.#program.ended;
  }

  async #run(): Promise<void> {
    const { name, root, logFile, port, onProcess } = this.#parts;
    const own = Object.entries(process.env).filter(([key]) => !key.startsWith("SVC_"));
    const program = new Program(
      `svc ${name}`,
      {
        command: join(root, "node_modules/.bin/svc"),
        args: ["serve", "--migrate"],
        env: { ...Object.fromEntries(own), ...this.settings },
        url: `http://127.0.0.1:${port}`,
        settings: [],
      },
      logFile,
    );
    this.#program = program;
    await onProcess();
    void program.ended.then(() => this.#restart());
    if (!(await untilReady(`http://127.0.0.1:${port}/readyz`, program.ended))) {
      throw new Error(`the instance ${name} does not start; its log is ${logFile}`);
    }
  }

  async #restart(): Promise<void> {
    if (this.#stopped) return;
    process.stderr.write(`svc ${this.name} | has ended; it starts again in ${RESTART_SECONDS} s\n`);
    await after(RESTART_SECONDS * 1000, undefined, { ref: false });
    if (this.#stopped) return;
    await this.#run().catch((error: unknown) => {
      process.stderr.write(`svc ${this.name} | ${error instanceof Error ? error.message : String(error)}\n`);
    });
  }
}
