import { UPLOAD_PACK_RESULT, encodeErrorLine } from "@devplat/git-protocol";
import { splitTarget } from "../routing/target.ts";
import type { RequestContext } from "./request-context.ts";
import { SANDBOX_HEADERS, answerText } from "./text-answer.ts";
import { discardUnread } from "./unread-body.ts";

/**
 * Ends a request that a limit of this service refuses. Git prints the text of a refused `info/refs`, and hides that of a
 * refused POST: a fetch of a git client gets 200 with an `ERR` packet, which it prints (spec/svc.md section 1).
 */
export function answerBusy(
  context: RequestContext,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>>,
): void {
  const { response, request } = context;
  context.refusedBy ??= "limit";
  if (!isGitFetch(context) || response.headersSent) {
    answerText(context, status, message, headers);
    return;
  }
  const body = encodeErrorLine(message);
  response.writeHead(200, {
    ...SANDBOX_HEADERS,
    "Content-Type": UPLOAD_PACK_RESULT,
    "Cache-Control": "no-cache",
    "Content-Length": body.length,
    "X-Request-Id": context.id,
    ...(request.complete || request.httpVersionMajor > 1 ? {} : { Connection: "close" }),
  });
  response.end(body);
  discardUnread(context);
}

/** Whether a git client asks for a pack: only such clients read the response as packets. */
function isGitFetch({ request }: RequestContext): boolean {
  const { method, url = "", headers } = request;
  if (method !== "POST" || !splitTarget(url).path.endsWith("/git-upload-pack")) return false;
  return headers.accept?.includes(UPLOAD_PACK_RESULT) === true;
}
