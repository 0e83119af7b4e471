import { messageText } from "@devplat/git-protocol";
import { PROBLEM_MEDIA_TYPE } from "@devplat/web-kit/problem";
import type { ProblemCode } from "../../problem-types.ts";
import { documentOf, type Problem } from "./problem.ts";
import type { RequestContext } from "./request-context.ts";
import { discardUnread } from "./unread-body.ts";

/** Headers of all responses, relayed ones too, so that content of the code host never runs on our origin. */
export const SANDBOX_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": "sandbox; default-src 'none'",
  "X-Content-Type-Options": "nosniff",
};

/** Type of LFS's errors: git-lfs shows the `message` of such a body, and no other body (git-lfs docs/api, "Response Errors"). */
export const LFS_TYPE = "application/vnd.git-lfs+json";

/** Kinds of git requests that programs other than git send. */
const READS_PROBLEMS: ReadonlySet<string> = new Set(["ensure", "seed", "seed_file"]);

/** Code of the problem that a status of a git route stands for, where the client reads problem documents. */
const PROBLEM_CODES: Readonly<Record<number, ProblemCode>> = {
  400: "malformed_body",
  401: "unauthorized",
  403: "forbidden",
  404: "no_such_path",
  405: "method_not_allowed",
  408: "request_timeout",
  413: "body_too_large",
  415: "not_json",
  429: "too_many_requests",
  410: "not_shown",
  502: "host_unreachable",
  503: "busy",
  504: "host_silent",
};

/**
 * Ends a request with a text, because git prints only text/plain. It prints control characters too, so they are escaped.
 * Clients of LFS, `svc/ensure` and `svc/seed` get JSON. If the client is still sending its body, the
 * connection is closed after the answer: reading an endless body to its end would be a gift.
 */
export function answerText(
  context: RequestContext,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const { subject, request } = context;
  if (subject !== undefined && READS_PROBLEMS.has(subject.tail)) {
    const code = PROBLEM_CODES[status] ?? "internal";
    answerProblem(context, { code, detail: message, headers });
    return;
  }
  if (subject?.tail === "lfs" && request.headers.accept?.includes(LFS_TYPE) === true) {
    const body = JSON.stringify({ message, request_id: context.id });
    answerShort(context, status, body, { ...headers, "Content-Type": LFS_TYPE });
    return;
  }
  answerShort(context, status, `${messageText(message)}\n`, {
    ...headers,
    "Content-Type": "text/plain; charset=utf-8",
  });
}

/** Ends a request of the administration, before the administration is asked, as it would: with a problem document. */
export function answerProblem(context: RequestContext, problem: Problem): void {
  const headers = { ...problem.headers, "Content-Type": PROBLEM_MEDIA_TYPE };
  const document = documentOf(problem);
  answerShort(context, document.status, JSON.stringify(document), headers);
}

function answerShort(
  context: RequestContext,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>>,
): void {
  const { request, response } = context;
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  response.writeHead(status, {
    ...SANDBOX_HEADERS,
    "Cache-Control": "no-store",
    ...headers,
    "Content-Length": Buffer.byteLength(body),
    "X-Request-Id": context.id,
    ...(request.complete || request.httpVersionMajor > 1 ? {} : { Connection: "close" }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
  discardUnread(context);
}
