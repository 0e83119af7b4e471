import { mediaType } from "./headers.ts";
import type { UpstreamAnswer } from "./upstream.ts";

export const UPLOAD_PACK_REQUEST = "application/x-git-upload-pack-request";
export const UPLOAD_PACK_RESULT = "application/x-git-upload-pack-result";

/** Whether an answer's head is that of an upload-pack result whose bytes we can read. */
export function isUploadPackResult(answer: UpstreamAnswer): boolean {
  const encoding = answer.headers["content-encoding"];
  return (
    answer.status === 200 &&
    mediaType(answer.headers["content-type"]) === UPLOAD_PACK_RESULT &&
    (encoding === undefined || encoding === "identity")
  );
}
