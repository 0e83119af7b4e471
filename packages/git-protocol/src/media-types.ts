/** Media type of a request body (gitprotocol-http, "Smart Service git-upload-pack"). */
export const UPLOAD_PACK_REQUEST = "application/x-git-upload-pack-request";
/** Media type of the response to such a request. */
export const UPLOAD_PACK_RESULT = "application/x-git-upload-pack-result";
