/** Media types of smart HTTP (gitprotocol-http, "Smart Service git-upload-pack"). */
export const UPLOAD_PACK_REQUEST = "application/x-git-upload-pack-request";
export const UPLOAD_PACK_RESULT = "application/x-git-upload-pack-result";
