import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { text as readAll } from "node:stream/consumers";
import { systemCode } from "@devplat/base";
import { stringMember } from "@devplat/base/json-member";
import { noteLine, printLine, visible } from "@devplat/base/terminal";
import { countOf, printResult } from "@devplat/cli";
import { SvcError } from "../errors.ts";
import { splitRepository } from "../repository-name.ts";
import { serviceAddress } from "./api-client.ts";
import { exchange, type ApiResponse } from "./api-exchange.ts";
import type { RunCommand } from "./command.ts";
import { credentialAttributes } from "./credential-attributes.ts";

/** Seconds that the command waits by default: a large repository takes some minutes. */
const DEFAULT_SECONDS = 600;
/** Seconds that one request waits. The command line gives up after 60, and proxies often do. */
const REQUEST_SECONDS = 45;
/** Milliseconds before the next request, if the response names no time. */
const PAUSE_MS = 5000;
/** Times that refs are read again because somebody pushed in between. */
const MAX_MOVES = 5;
/** Exit code when the time is over and the objects are not here. */
const NOT_YET = 3;
const UNAUTHORIZED = 401;

/** Refs by name, with the objects that the code host shows. */
type Refs = Readonly<Record<string, string>>;

/** Brings the present objects of refs into the cache, with the credential that git has for the repository. */
export const ensure: RunCommand = async ({ positionals: [repository = "", ...patterns], options }) => {
  const split = splitRepository(repository);
  if (typeof split === "string")
    throw new SvcError("usage", `The repository ${JSON.stringify(repository)}: ${split}`);
  const seconds = countOf(options, "timeout");
  const end = Date.now() + (typeof seconds === "number" ? seconds : DEFAULT_SECONDS) * 1000;
  const url = new URL(`${repository}.git`, directory(serviceAddress()));
  const request = new EnsureRequests(url);
  let refs = await readRefs(url, patterns);
  for (let moves = 0; ;) {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    const answer = await request.send(refs, Math.min(left, REQUEST_SECONDS));
    switch (answer.status) {
      case 200:
        printResult(options, { state: "ready", repository, refs }, () => {
          for (const [name, oid] of Object.entries(refs)) printLine(`ready ${oid} ${name}`);
        });
        return 0;
      case 409:
        if (++moves > MAX_MOVES) throw refusedBy(url, answer);
        noteLine("the refs have moved; reading them again");
        refs = await readRefs(url, patterns);
        continue;
      case 202:
      case 503:
        if (Date.now() >= end) {
          printResult(options, { state: "pending", repository, refs }, () =>
            printLine(`pending ${repository}`),
          );
          return NOT_YET;
        }
        noteLine(
          answer.status === 202 ? "waiting for the objects" : `waiting: ${detailOf(answer) ?? "busy"}`,
        );
        // A request that waited itself needs no pause.
        if (answer.status === 503) await sleep(Math.min(PAUSE_MS, Math.max(0, end - Date.now())));
        continue;
      default:
        throw refusedBy(url, answer);
    }
  }
};

/** Requests with the credential of git, which is asked for when the service asks for it. */
class EnsureRequests {
  readonly #url: URL;
  #authorization: string | undefined;

  constructor(url: URL) {
    this.#url = url;
  }

  /** @throws SvcError `server_unreachable`, `usage` */
  async send(refs: Refs, timeout: number): Promise<ApiResponse> {
    const answer = await this.#post(refs, timeout);
    if (answer.status !== UNAUTHORIZED || this.#authorization !== undefined) return answer;
    this.#authorization = await gitCredential(this.#url);
    return this.#authorization === undefined ? answer : await this.#post(refs, timeout);
  }

  async #post(refs: Refs, timeout: number): Promise<ApiResponse> {
    const authorization = this.#authorization;
    return await exchange(
      new URL(`${this.#url.href}/svc/ensure`),
      "POST",
      JSON.stringify({ refs, timeout }),
      {
        "content-type": "application/json",
        ...(authorization !== undefined && { authorization }),
      },
    );
  }
}

/**
 * Asks git for the refs, as its fetches would see them. Without patterns: HEAD.
 *
 * @throws SvcError `server_refused`: git cannot read them; `not_found`: there is no such ref
 */
async function readRefs(url: URL, patterns: readonly string[]): Promise<Refs> {
  const asked = patterns.length === 0 ? ["HEAD"] : patterns;
  const { code, stdout } = await git(["ls-remote", "--quiet", "--", url.href, ...asked], "");
  if (code !== 0) throw new SvcError("server_refused", `git cannot read the refs of ${url.href}`);
  const lines = stdout.split("\n").flatMap((line) => {
    const [oid, name] = line.split("\t");
    return oid === undefined || name === undefined || name.endsWith("^{}") ? [] : [[name, oid] as const];
  });
  const refs = new Map<string, string>();
  for (const pattern of asked) {
    const found = candidates(pattern).find((name) => lines.some(([each]) => each === name));
    const [, oid] = lines.find(([name]) => name === found) ?? [];
    if (found === undefined || oid === undefined)
      throw new SvcError("not_found", `${url.href} has no ref ${JSON.stringify(pattern)}`);
    refs.set(found, oid);
  }
  return Object.fromEntries(refs);
}

/** Refs that a short name can mean, in the order of git (gitrevisions(7)). */
function candidates(name: string): readonly string[] {
  return name.startsWith("refs/") || name === "HEAD" ? [name] : [`refs/tags/${name}`, `refs/heads/${name}`];
}

/** Asks the credential helpers of git, and on a terminal the user. @returns undefined: there is none */
async function gitCredential(url: URL): Promise<string | undefined> {
  const request = [
    `protocol=${url.protocol.slice(0, -1)}`,
    `host=${url.host}`,
    `path=${url.pathname.slice(1)}`,
    "",
    "",
  ].join("\n");
  const { code, stdout } = await git(["credential", "fill"], request);
  const answer = credentialAttributes(stdout);
  const [user, password] = [answer.get("username"), answer.get("password")];
  if (code !== 0 || user === undefined || password === undefined) return undefined;
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

async function git(args: readonly string[], input: string): Promise<{ code: number | null; stdout: string }> {
  const child = spawn("git", args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  const output = readAll(child.stdout);
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  try {
    const [code] = (await ended) as [number | null];
    return { code, stdout: await output };
  } catch (error) {
    const reason = systemCode(error) === "ENOENT" ? "it is not installed" : "it cannot be started";
    throw new SvcError("usage", `Cannot run git: ${reason}`, { cause: error });
  }
}

/** With a slash at the end, so that a path is added to it. */
function directory(base: URL): URL {
  return base.href.endsWith("/") ? base : new URL(`${base.href}/`);
}

function detailOf({ text }: ApiResponse): string | undefined {
  try {
    const detail = stringMember(JSON.parse(text), "detail");
    return detail === undefined ? undefined : visible(detail);
  } catch {
    return undefined;
  }
}

function refusedBy(url: URL, answer: ApiResponse): SvcError {
  // A refusal of the code host is its own text.
  const detail = detailOf(answer) ?? visible(answer.text.trim().split("\n")[0] ?? "");
  const hint =
    answer.status === UNAUTHORIZED
      ? { hint: "Set up a credential helper for this address, as for git clone." }
      : {};
  return new SvcError("server_refused", `${url.host} answered ${answer.status}: ${detail}`, hint);
}
