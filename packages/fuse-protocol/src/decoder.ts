import type { RequestReader } from "./request-reader.ts";
import type { FuseRequest, RequestHeader } from "./request.ts";

/** Reads the body of one kind of request, without its end. */
export type Decoder = (header: RequestHeader, reader: RequestReader) => FuseRequest;
