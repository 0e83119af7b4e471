import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "@devplat/testkit";
import { asNobody } from "./other-user.ts";

export interface ForeignConnectionOptions {
  /** Bytes sent on each connection. Default: none. */
  readonly request?: string;
  /** Default: any. */
  readonly sourcePort?: number;
  readonly count?: number;
}

/** Connections to a server, held by a process of another user. */
export interface ForeignConnections {
  /** How many of them the server has ended. */
  readonly closed: number;
  /** Resets the connections, so that no state of them is left in the kernel. */
  reset(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Connects as another user; resolves when all connections are open. */
export async function connectAsNobody(
  url: string,
  options: ForeignConnectionOptions = {},
): Promise<ForeignConnections> {
  const { hostname, port } = new URL(url);
  const script = fileURLToPath(new URL("hold-connections.ts", import.meta.url));
  const [program = "", ...words] = asNobody;
  const node = [process.execPath, "--disable-warning=ExperimentalWarning", script];
  const numbers = [options.sourcePort ?? 0, options.count ?? 1].map(String);
  const child = spawn(program, [...words, ...node, hostname.replaceAll(/[[\]]/g, ""), port, ...numbers], {
    cwd: "/",
    env: { ...process.env, REQUEST: options.request ?? "" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const lines: string[] = [];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  try {
    await until(
      () => lines.includes("open"),
      () => lines.at(-1) ?? "no line",
    );
  } catch (error) {
    await kill();
    throw error;
  }
  return {
    get closed() {
      return lines.filter((line) => line.startsWith("closed ")).length;
    },
    reset: async () => {
      child.stdin.end("reset\n");
      await ended;
    },
    [Symbol.asyncDispose]: kill,
  };
}
