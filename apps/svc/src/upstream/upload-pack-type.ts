import { mediaType } from "./headers.ts";
import type { UpstreamResponse } from "./upstream.ts";

export const UPLOAD_PACK_REQUEST = "application/x-git-upload-pack-request";
export const UPLOAD_PACK_RESULT = "application/x-git-upload-pack-result";

/** Whether a response's head is that of an upload-pack result whose bytes we can read. */
export function isUploadPackResult(response: UpstreamResponse): boolean {
  const encoding = response.headers["content-encoding"];
  return (
    response.status === 200 &&
    mediaType(response.headers["content-type"]) === UPLOAD_PACK_RESULT &&
    (encoding === undefined || encoding === "identity")
  );
}
