import type { ChildProcess } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { buffer as readBuffer } from "node:stream/consumers";
import { signalGroup } from "@devplat/base/process-signal";
import type { Access, Caller, Judgement } from "./access.ts";
import { answerApi, API_PREFIX } from "./api.ts";
import { sendBody } from "./body.ts";
import type { Call } from "./calls.ts";
import { readCommand } from "./command.ts";
import type { Fault, Faults } from "./faults.ts";
import { runHttpBackend } from "./http-backend.ts";
import type { AppSide } from "./apps.ts";
import type { OauthSide } from "./oauth.ts";
import { parseRepositoryPath, serviceOf, type RepositoryPath } from "./request-path.ts";
import { answerRest, type RestAnswer } from "./rest-side.ts";
import { readSideRequest } from "./side.ts";

export interface ServerParts {
  readonly access: Access;
  readonly faults: Faults;
  readonly oauth: OauthSide;
  readonly apps: AppSide;
  readonly record: (call: Call) => void;
  readonly refInWant: boolean;
  readonly git: string;
  /** The code host's own address, for redirects and API answers. */
  readonly base: () => string;
}

/** The code host's HTTP server: notes the call, meets it with a fault if one is due, else lets git or the API answer. */
export function createCodeHostServer(parts: ServerParts): Server {
  const server = createServer((request, response) => {
    handle(parts, request, response).catch(() => {
      // Only git itself can fail here (it was killed, or is not installed): the client sees a cut answer.
      response.destroy();
    });
  });
  // Tests hold connections idle on purpose, and stall bodies for long.
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  return server;
}

async function handle(parts: ServerParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path = "", query = ""] = (request.url ?? "").split(/\?(.*)/s);
  const target = parseRepositoryPath(path);
  const call = noteCall(request, path, query, target);
  parts.record(call);
  let head: Buffer = Buffer.alloc(0);
  if (call.service === "git-upload-pack" && request.method === "POST" && speaksV2(call.gitProtocol)) {
    const read = await readCommand(request);
    head = read.bytes;
    if (read.command !== undefined) call.command = read.command;
  }
  const fault = parts.faults.take({ method: call.method, path, command: call.command });
  if (fault?.delayMs !== undefined) await sleep(fault.delayMs);
  await fault?.until;
  if (response.destroyed) return;
  if (fault?.hang === true) return void request.resume();
  const answer = (status: number, headers: Record<string, string>, body: Readable): void => {
    call.status = status;
    response.writeHead(status, { ...headers, ...lowerCased(fault?.headers) });
    if (request.method === "HEAD") response.end();
    else sendBody(response, body, call, fault);
  };
  if (fault !== undefined && (fault.status !== undefined || fault.body !== undefined)) {
    request.resume();
    return answer(
      fault.status ?? 200,
      { "content-type": "text/plain" },
      Readable.from(chunksOf(fault.body ?? "")),
    );
  }
  if (SIDE_PATH.test(path)) {
    const asked = await readSideRequest(request, path, query);
    const found = parts.oauth.answer(asked) ?? parts.apps.answer(asked);
    if (found !== undefined)
      return answer(found.status, found.headers ?? {}, Readable.from(chunksOf(found.body)));
  }
  const caller = parts.access.identify(call.authorization);
  if (path === GRAPHQL_PATH || path.startsWith(`${API_PREFIX}/`) || path.startsWith(UPLOADS_PREFIX)) {
    const found = await answerProgram(parts, caller, request, path, query);
    if (found !== undefined) return answer(found.status, found.headers ?? {}, found.body);
  }
  if (path.startsWith(`${API_PREFIX}/`)) {
    request.resume();
    const { status, headers, body } = answerApi(parts.access, caller, call.method, path, parts.base());
    return answer(
      status,
      { "content-type": JSON_TYPE, ...headers },
      Readable.from(chunksOf(JSON.stringify(body))),
    );
  }
  if (target === undefined) return refuse(request, answer, { allowed: false, status: 404 }, parts, "", "");
  const action = call.service === "git-receive-pack" ? "write" : "read";
  const judgement = parts.access.judge(caller, target.owner, target.name, action);
  if (!judgement.allowed) return refuse(request, answer, judgement, parts, target.tail, query);
  let child: ChildProcess | undefined;
  response.once("close", () => {
    if (child !== undefined && !call.finished) signalGroup(child, "SIGKILL");
  });
  const cgi = await runHttpBackend(
    {
      request,
      head,
      root: judgement.repository.path,
      pathInfo: `/${target.tail}`,
      query,
      refInWant: parts.refInWant,
      git: parts.git,
      user: caller.kind === "user" ? caller.user.login : undefined,
    },
    (started) => (child = started),
  );
  answer(cgi.status, cgi.headers, cgi.body);
}

/** API request of a program. Undefined: the smaller side responds. */
async function answerProgram(
  parts: ServerParts,
  caller: Caller,
  request: IncomingMessage,
  path: string,
  query: string,
): Promise<RestAnswer | undefined> {
  const body = await readBuffer(request);
  if (caller.kind === "unknown") {
    const text = JSON.stringify({ message: "Bad credentials" });
    return { status: 401, headers: { "content-type": JSON_TYPE }, body: Readable.from(chunksOf(text)) };
  }
  if (path === GRAPHQL_PATH) {
    // Loaded when first asked: the schema is a megabyte.
    const { answerGraphql } = await import("./graphql-side.ts");
    const text = JSON.stringify(await answerGraphql(parts.access, caller, body.toString("utf8")));
    return { status: 200, headers: { "content-type": JSON_TYPE }, body: Readable.from(chunksOf(text)) };
  }
  const prefix = path.startsWith(UPLOADS_PREFIX) ? UPLOADS_PREFIX.slice(0, -1) : API_PREFIX;
  const asked = {
    method: request.method ?? "",
    path: path.slice(prefix.length),
    query: new URLSearchParams(query),
    headers: request.headers,
    body,
  };
  return answerRest(parts.access, caller, asked, parts.base());
}

/** Path next to REST, as on GitHub Enterprise Server. */
const GRAPHQL_PATH = "/api/graphql";
const UPLOADS_PREFIX = "/api/uploads/";

type Answer = (status: number, headers: Record<string, string>, body: Readable) => void;

function refuse(
  request: IncomingMessage,
  answer: Answer,
  judgement: Exclude<Judgement, { allowed: true }>,
  parts: ServerParts,
  tail: string,
  query: string,
): void {
  request.resume();
  const text = Readable.from(chunksOf(`${MESSAGES[judgement.status]}\n`));
  if (judgement.status === 301) {
    const location = `${parts.base()}/${judgement.owner}/${judgement.name}.git/${tail}${query && `?${query}`}`;
    return answer(301, { location, "content-type": "text/plain" }, text);
  }
  const challenge = judgement.status === 401 ? { "www-authenticate": 'Basic realm="GitHub"' } : {};
  answer(judgement.status, { "content-type": "text/plain; charset=UTF-8", ...challenge }, text);
}

/** Paths of logins and apps; all of their bodies are small. */
const SIDE_PATH =
  /^\/(?:login\/(?:oauth|device)\/|(?:organizations\/[^/]+\/)?settings\/apps\/new$|api\/v3\/(?:app(?:s|lications|-manifests)?(?:\/|$)|installation\/token$|user\/orgs$|(?:repos\/[^/]+\/[^/]+|(?:orgs|users)\/[^/]+)\/installation$))/;

const JSON_TYPE = "application/json; charset=utf-8";
const MESSAGES = {
  301: "Moved Permanently",
  401: "Repository not found or credentials wrong.",
  403: "Access to this repository is forbidden.",
  404: "Repository not found.",
} as const;

function noteCall(
  request: IncomingMessage,
  path: string,
  query: string,
  target: RepositoryPath | undefined,
): Call {
  const protocol = request.headers["git-protocol"];
  const service = target && serviceOf(target.tail, new URLSearchParams(query));
  const call: Call = {
    method: request.method ?? "",
    path,
    query,
    headers: request.headers,
    authorization: request.headers.authorization,
    gitProtocol: typeof protocol === "string" ? protocol : undefined,
    ...(service === undefined ? {} : { service }),
    status: 0,
    bytesIn: 0,
    bytesOut: 0,
    finished: false,
  };
  // Counted where the bytes arrive, without becoming a reader of the stream.
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk instanceof Uint8Array) call.bytesIn += chunk.length;
    return push(chunk, encoding);
  };
  return call;
}

/** `Git-Protocol` is a colon-separated list of which git takes the highest version. */
function speaksV2(gitProtocol: string | undefined): boolean {
  return gitProtocol?.split(":").includes("version=2") === true;
}

function chunksOf(body: string | Uint8Array): Buffer[] {
  return body.length === 0 ? [] : [Buffer.from(body)];
}

function lowerCased(headers: Fault["headers"]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
}
