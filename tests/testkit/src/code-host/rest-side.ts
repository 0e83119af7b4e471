import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { Access, Caller, Repository } from "./access.ts";
import { API_PREFIX } from "./api.ts";

export interface RestAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: Readable;
}

export interface RestRequest {
  readonly method: string;
  /** Below the API's base. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

const ISSUES = 5;
const PAGE = 2;
const CHUNK = Buffer.alloc(64 * 1024, "0123456789abcdef");

/**
 * The part of GitHub's REST API that programs use most, in its shapes: repositories by name and number, issues in pages
 * with `Link`, contents, assets of any size (`/releases/assets/{bytes}`) with ranges, uploads; entity tags and rate limit
 * headers everywhere. Undefined: not answered here.
 */
export function answerRest(
  access: Access,
  caller: Caller,
  request: RestRequest,
  base: string,
): RestAnswer | undefined {
  const [, id] = /^\/repositories\/(\d+)/.exec(request.path) ?? [];
  const numbered = id === undefined ? undefined : access.all().find((each) => String(each.id) === id);
  if (id !== undefined && numbered === undefined) return answer(404, { message: "Not Found" });
  const path =
    numbered === undefined
      ? request.path
      : request.path.replace(/^\/repositories\/\d+/, `/repos/${numbered.owner}/${numbered.name}`);
  const [, owner = "", name = "", rest = ""] = /^\/repos\/([^/]+)\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  if (path === "/" || path === "") return answer(200, {});
  if (path === "/rate_limit") return answer(200, { resources: {}, rate: { limit: 5000, remaining: 4999 } });
  if (path === "/search/issues") return answer(200, { total_count: 0, items: [] });
  if (owner === "") return undefined;
  const judged = access.judge(
    caller,
    owner,
    name,
    request.method === "GET" || request.method === "HEAD" ? "read" : "write",
  );
  if (!judged.allowed)
    return judged.status === 404 || judged.status === 401 ? answer(404, { message: "Not Found" }) : undefined;
  return ofRepository(judged.repository, rest, request, base, numbered !== undefined);
}

function ofRepository(
  repository: Repository,
  rest: string,
  request: RestRequest,
  base: string,
  numbered: boolean,
): RestAnswer | undefined {
  const { method, query, headers, body } = request;
  if (rest === "" && numbered) {
    const fullName = `${repository.owner}/${repository.name}`;
    return answer(200, {
      id: repository.id,
      name: repository.name,
      full_name: fullName,
      owner: { login: repository.owner },
    });
  }
  if (rest === "/issues" && method === "GET") return issues(repository, query, headers, base);
  if (rest === "/issues" && method === "POST") {
    return answer(201, { number: ISSUES + 1, ...(JSON.parse(body.toString("utf8")) as object) });
  }
  const [, number] = /^\/issues\/(\d+)$/.exec(rest) ?? [];
  if (number !== undefined) {
    return answer(200, {
      number: Number(number),
      title: "x",
      ...(number === "2" ? { pull_request: {} } : {}),
    });
  }
  if (/^\/issues\/\d+\/comments$/.test(rest) && method === "POST") return answer(201, { id: 1 });
  if (rest === "/pulls" && method === "POST")
    return answer(201, { number: 7, received: body.toString("utf8") });
  if (rest.startsWith("/contents/")) {
    return answer(200, { path: decodeURIComponent(rest.slice("/contents/".length)), type: "file" });
  }
  if (rest === "/readme" && !String(headers["accept"]).includes("html")) {
    return answer(200, { name: "README.md", content: "cmVhZA==", encoding: "base64", html_url: base });
  }
  if (rest === "/readme") return html("<h1>read</h1><script>alert(1)</script>");
  if (/^\/releases\/\d+\/assets$/.test(rest) && method === "POST") {
    const digest = createHash("sha256").update(body).digest("hex");
    return answer(201, { name: query.get("name"), size: body.length, digest: `sha256:${digest}` });
  }
  const [, bytes] = /^\/releases\/assets\/(\d+)$/.exec(rest) ?? [];
  if (bytes !== undefined) return asset(Number(bytes), headers);
  if (rest.startsWith("/zipball/")) {
    return {
      status: 302,
      headers: { location: `${base}/archives/${rest.slice(9)}?token=signed` },
      body: Readable.from([]),
    };
  }
  return undefined;
}

function issues(
  { id, owner, name }: Repository,
  query: URLSearchParams,
  headers: RestRequest["headers"],
  base: string,
): RestAnswer {
  const page = Number(query.get("page") ?? "1");
  const first = (page - 1) * PAGE + 1;
  const list = Array.from({ length: Math.max(0, Math.min(PAGE, ISSUES - first + 1)) }, (_, index) => ({
    number: first + index,
    title: `Issue ${first + index} of ${owner}/${name}`,
  }));
  const last = Math.ceil(ISSUES / PAGE);
  const link = (to: number, rel: string): string =>
    `<${base}${API_PREFIX}/repositories/${id}/issues?page=${to}>; rel="${rel}"`;
  const links = page < last ? { link: `${link(page + 1, "next")}, ${link(last, "last")}` } : {};
  return answer(200, list, links, headers);
}

function asset(bytes: number, headers: RestRequest["headers"]): RestAnswer {
  const [, from = "0", to] = /^bytes=(\d+)-(\d*)$/.exec(String(headers["range"] ?? "")) ?? [];
  const start = Number(from);
  const end = to === undefined || to === "" ? bytes - 1 : Math.min(Number(to), bytes - 1);
  const length = end - start + 1;
  const partial = headers["range"] !== undefined;
  return {
    status: partial ? 206 : 200,
    headers: {
      "content-type": "application/octet-stream",
      "content-length": String(length),
      "accept-ranges": "bytes",
      ...(partial ? { "content-range": `bytes ${start}-${end}/${bytes}` } : {}),
    },
    body: Readable.from(chunks(length), { objectMode: false, highWaterMark: CHUNK.length }),
  };
}

function* chunks(length: number): Generator<Buffer> {
  for (let left = length; left > 0; left -= CHUNK.length)
    yield left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left);
}

function html(text: string): RestAnswer {
  return {
    status: 200,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "set-cookie": "session=planted",
      "strict-transport-security": "max-age=1",
      "access-control-allow-origin": "*",
    },
    body: Readable.from([Buffer.from(text)]),
  };
}

function answer(
  status: number,
  body: unknown,
  more: Record<string, string> = {},
  asked: RestRequest["headers"] = {},
): RestAnswer {
  const text = Buffer.from(JSON.stringify(body));
  const etag = `"${createHash("sha256").update(text).digest("hex").slice(0, 16)}"`;
  const headers = {
    "content-type": "application/json; charset=utf-8",
    etag,
    "x-ratelimit-limit": "5000",
    "x-ratelimit-remaining": "4999",
    "x-github-request-id": "TEST:1",
    ...more,
  };
  if (asked["if-none-match"] === etag) return { status: 304, headers, body: Readable.from([]) };
  return {
    status,
    headers: { ...headers, "content-length": String(text.length) },
    body: Readable.from([text]),
  };
}
