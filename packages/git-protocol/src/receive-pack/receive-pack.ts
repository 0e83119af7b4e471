/** The messages of `git-receive-pack`, with which a client pushes. They are the same in protocol v0, v1 and v2. */
export {
  ReceivePackRequestDecoder,
  encodeReceivePackRequest,
  hasCapability,
  type ReceivePackRequest,
  type RefCommand,
  type RequestDecoderOptions,
} from "./request.ts";
export { decodePushCertificate, encodePushCertificate, type PushCertificate } from "./push-certificate.ts";
export { decodeReportStatus, encodeReportStatus, type PushReport, type RefReport } from "./report-status.ts";
export {
  decodeRefAdvertisement,
  encodeRefAdvertisement,
  type AdvertisedRef,
  type RefAdvertisement,
} from "./ref-advertisement.ts";
