import type { ChildProcess } from "node:child_process";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { signalGroup } from "@devplat/base/process-signal";
import { gitEnvironment, gitSettings } from "../git-environment.ts";
import { spawnGroup } from "../process.ts";
import { TestkitError } from "../errors.ts";

/** Everything a code host allows beyond git's defaults, for every repository it serves. */
const SERVER_CONFIG: Readonly<Record<string, string>> = {
  "http.receivepack": "true",
  "uploadpack.allowFilter": "true",
  "uploadpack.allowAnySHA1InWant": "true",
  "receive.updateServerInfo": "true",
  // The repositories may belong to another user than the one who runs the tests.
  "safe.directory": "*",
  // No background process may outlive a request.
  "gc.auto": "0",
  "receive.autogc": "false",
};

/** A CGI header block is small; a longer one means that the program speaks something else. */
const MAX_HEADER_BYTES = 64 * 1024;

export interface CgiRequest {
  readonly request: IncomingMessage;
  /** Part of the request's body that was already read. */
  readonly head: Buffer;
  /** The folder that holds the repository, and the path below it. */
  readonly root: string;
  readonly pathInfo: string;
  readonly query: string;
  /** Whether `ref-in-want` is offered. */
  readonly refInWant: boolean;
  /** The program. */
  readonly git: string;
  /** The login, when the caller has one. */
  readonly user: string | undefined;
}

export interface CgiAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: Readable;
  readonly child: ChildProcess;
}

/**
 * Runs stock `git http-backend` for one request (git-http-backend(1), RFC 3875) and resolves when its header is
 * there. The request's body streams in and the answer's out, with back-pressure; nothing is kept.
 */
export function runHttpBackend(
  options: CgiRequest,
  onSpawn: (child: ChildProcess) => void,
): Promise<CgiAnswer> {
  const { request } = options;
  const child = spawnGroup(options.git, ["http-backend"], {
    // A test does not need its messages, such as one about a dumb client that requests a packed object.
    stdio: ["pipe", "pipe", "ignore"],
    env: cgiEnvironment(options),
  });
  onSpawn(child);
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new TypeError("both streams were asked for");
  // git may answer and leave without reading all of the body: its answer tells.
  stdin.on("error", () => request.resume());
  if (options.head.length > 0) stdin.write(options.head);
  request.pipe(stdin);
  // A body that was cut must not look like one that ended.
  request.once("close", () => {
    if (!request.complete) signalGroup(child, "SIGTERM");
  });
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) {
        if (head.length > MAX_HEADER_BYTES) reject(TestkitError.failed("git http-backend", "no CGI header"));
        return;
      }
      stdout.pause();
      stdout.off("data", onData).off("end", onEnd);
      const rest = head.subarray(end + 4);
      if (rest.length > 0) stdout.unshift(rest);
      resolve({ ...parseHeader(head.toString("latin1", 0, end)), body: stdout, child });
    };
    const onEnd = (): void => reject(TestkitError.failed("git http-backend", "it ended without an answer"));
    stdout.on("data", onData).on("end", onEnd);
    child.once("error", (error) =>
      reject(TestkitError.failed("git http-backend", "it cannot be started", { cause: error })),
    );
  });
}

function parseHeader(text: string): { status: number; headers: Record<string, string> } {
  const headers: Record<string, string> = {};
  let status = 200;
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === "status") status = Number.parseInt(value, 10);
    else headers[name] = value;
  }
  return { status, headers };
}

function cgiEnvironment(options: CgiRequest): NodeJS.ProcessEnv {
  const { headers, method } = options.request;
  return gitEnvironment({
    ...gitSettings({ ...SERVER_CONFIG, "uploadpack.allowRefInWant": String(options.refInWant) }),
    GIT_PROJECT_ROOT: options.root,
    GIT_HTTP_EXPORT_ALL: "1",
    PATH_INFO: options.pathInfo,
    QUERY_STRING: options.query,
    REQUEST_METHOD: method,
    REMOTE_ADDR: "127.0.0.1",
    ...(options.user === undefined ? {} : { REMOTE_USER: options.user }),
    ...(headers["content-type"] === undefined ? {} : { CONTENT_TYPE: headers["content-type"] }),
    ...(headers["content-length"] === undefined ? {} : { CONTENT_LENGTH: headers["content-length"] }),
    ...(headers["content-encoding"] === undefined
      ? {}
      : { HTTP_CONTENT_ENCODING: headers["content-encoding"] }),
    ...(typeof headers["git-protocol"] === "string" ? { GIT_PROTOCOL: headers["git-protocol"] } : {}),
  });
}
