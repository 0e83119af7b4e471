import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { cpuSecondsOf, type CpuSeconds } from "../cpu.ts";
import { TestkitError } from "../errors.ts";
import { linear } from "../repositories/repositories.ts";
import { API_PREFIX } from "./api.ts";
import type { Call } from "./calls.ts";
import type { AddRepositoryOptions, CodeHost } from "./code-host.ts";
import type { RemoteCall, RemoteMessage, RemoteRequest } from "./remote.ts";

type Remote = { [Name in RemoteCall]: (...args: Parameters<CodeHost[Name]>) => Promise<void> };

/**
 * The code host in a process of its own, for benchmarks: it does not share the caller's event loop, and its
 * processor time can be read. Every call is a message, so all of them are asynchronous; faults stay with
 * {@link CodeHost}.
 */
export interface CodeHostProcess extends Remote {
  readonly url: string;
  readonly apiUrl: string;
  readonly host: string;
  readonly root: string;
  readonly pid: number;
  addRepository(
    owner: string,
    name: string,
    options?: AddRepositoryOptions,
  ): Promise<{ path: string; url: string }>;
  calls(): Promise<readonly Call[]>;
  /**
   * `children` is what git used for the requests that have ended; `own` is the relay in front of it, which no
   * stock server has in this form. In steps of 10 ms: measure over many requests.
   */
  cpuSeconds(): CpuSeconds;
}

/** @param networkOf process whose network it shares; default this process */
export async function startCodeHostProcess(networkOf?: number): Promise<CodeHostProcess> {
  const flags = ["--disable-warning=ExperimentalWarning"];
  const child = fork(join(import.meta.dirname, "main.ts"), {
    ...(networkOf === undefined
      ? { execArgv: flags }
      : { execPath: "nsenter", execArgv: ["-t", String(networkOf), "-n", process.execPath, ...flags] }),
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // Ctrl-C goes to the caller, which stops it.
    detached: true,
  });
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  const hello = new Promise<{ url: string; root: string }>((resolve, reject) => {
    child.on("message", (message: RemoteMessage) => {
      if ("hello" in message) return resolve(message.hello);
      const entry = waiting.get(message.id);
      waiting.delete(message.id);
      if ("failed" in message) entry?.reject(new TestkitError("command_failed", message.failed));
      else entry?.resolve(message.result);
    });
    child.once("exit", (code) => {
      const error = TestkitError.failed("the code host", `it ended with ${code}`);
      reject(error);
      for (const entry of waiting.values()) entry.reject(error);
      waiting.clear();
    });
  });
  let last = 0;
  const ask = (request: DistributiveOmit<RemoteRequest, "id">): Promise<unknown> => {
    const id = ++last;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      child.send({ ...request, id }, (error) => {
        if (error !== null) reject(error);
      });
    });
  };
  const remote =
    <Name extends RemoteCall>(call: Name) =>
    async (...args: Parameters<CodeHost[Name]>): Promise<void> => {
      await ask({ call, args });
    };
  const { url, root } = await hello;
  let built = 0;
  return {
    url,
    apiUrl: url + API_PREFIX,
    host: url.slice("http://".length),
    root,
    pid: child.pid ?? -1,
    async addRepository(owner, name, { private: hidden = false, build = (dir: string) => linear(dir) } = {}) {
      const path = join(root, `built-${++built}.git`);
      await build(path);
      return (await ask({ call: "adopt", args: [owner, name, path, hidden] })) as {
        path: string;
        url: string;
      };
    },
    calls: async () => (await ask({ call: "calls" })) as readonly Call[],
    cpuSeconds: () => cpuSecondsOf(child.pid ?? -1),
    push: remote("push"),
    addUser: remote("addUser"),
    revoke: remote("revoke"),
    setVisibility: remote("setVisibility"),
    rename: remote("rename"),
    remove: remote("remove"),
    resetCalls: remote("resetCalls"),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      await ask({ call: "stop", args: [] });
      await gone;
    },
  };
}

type DistributiveOmit<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;
