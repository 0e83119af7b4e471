/** Media type of a request body (gitprotocol-http, "Smart Service git-upload-pack"). */
export const UPLOAD_PACK_REQUEST = "application/x-git-upload-pack-request";
/** Media type of the response to such a request. */
export const UPLOAD_PACK_RESULT = "application/x-git-upload-pack-result";
/** Media type of a push (gitprotocol-http, "Smart Service git-receive-pack"). */
export const RECEIVE_PACK_REQUEST = "application/x-git-receive-pack-request";
/** Media type of the response to a push. */
export const RECEIVE_PACK_RESULT = "application/x-git-receive-pack-result";
