export { PROTOCOL_ERROR_CODES, ProtocolError, type ProtocolErrorCode } from "./errors.ts";
export {
  DELIM_PKT,
  FLUSH_PKT,
  MAX_PAYLOAD_BYTES,
  MAX_PKT_LINE_BYTES,
  PKT_LENGTH_BYTES,
  RESPONSE_END_PKT,
  decodePktLength,
  decodePktLine,
  encodePktLine,
  lineText,
  type PktLine,
  type PktLineDecoding,
} from "./pkt-line.ts";
export { PktLineReader } from "./pkt-line-reader.ts";
export {
  MAX_SIDE_BAND_BYTES,
  SIDE_BAND,
  decodeSideBand,
  encodeErrorLine,
  encodeSideBand,
  encodeSideBandError,
  encodeSideBandProgress,
  messageText,
  type SideBandChannel,
  type SideBandPacket,
} from "./side-band.ts";
export { OID_BYTES, isAnyOid, isOid, type ObjectFormat } from "./object-format.ts";
export {
  MAX_COMMANDS_PER_BODY,
  commandArgs,
  decodeCommandBody,
  decodeCommandBodySteps,
  decodeCommandHead,
  decodeCommandRequest,
  encodeCommandRequest,
  requestObjectFormat,
  type CommandBody,
  type CommandHead,
  type CommandRequest,
  type EncodedCommand,
} from "./command-request.ts";
export {
  RECEIVE_PACK_REQUEST,
  RECEIVE_PACK_RESULT,
  UPLOAD_PACK_REQUEST,
  UPLOAD_PACK_RESULT,
} from "./media-types.ts";
export {
  MAX_REF_PREFIXES,
  decodeLsRefsRequest,
  encodeLsRefsRequest,
  type LsRefsRequest,
} from "./ls-refs-request.ts";
export {
  LsRefsFraming,
  decodeLsRefsResponse,
  decodeRefLine,
  encodeLsRefsResponse,
  type RefLine,
} from "./ls-refs-response.ts";
export {
  EMPTY_FETCH,
  canonicalFetchArgs,
  canonicalFetchSteps,
  decodeFetchRequest,
  decodeFetchSteps,
  encodeFetchRequest,
  type FetchRequest,
} from "./fetch-request.ts";
export {
  FETCH_SECTIONS,
  FetchResponseWalker,
  encodeFetchResponse,
  type FetchResponseEvents,
  type FetchResponseSection,
  type FetchSection,
} from "./fetch-response.ts";
export {
  decodeCapabilityAdvertisement,
  encodeCapabilityAdvertisement,
  type CapabilityAdvertisement,
} from "./capability-advertisement.ts";
export { requestedProtocolVersion, type ProtocolVersion } from "./protocol-version.ts";
export { finish, type Steps } from "./steps.ts";
