import type { ServerResponse } from "node:http";

/** A response to a Vault request that does not come from a Vault server. */
export interface ForeignAnswerCase {
  readonly name: string;
  /** It has no body, which some of Vault's own successes do not have either. */
  readonly isEmptySuccess: boolean;
  readonly send: (response: ServerResponse) => void;
}

const PAGE = "<!doctype html><html><title>planted-page</title></html>";
const HTML = { "content-type": "text/html" };
const JSON_TYPE = { "content-type": "application/json" };

function answer(
  name: string,
  status: number,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = JSON_TYPE,
): ForeignAnswerCase {
  return {
    name,
    isEmptySuccess: status < 300 && body.length === 0,
    send: (response) => void response.writeHead(status, headers).end(body),
  };
}

/** Pages of proxies, portals and balancers, answers of other APIs, and damaged answers. */
export const FOREIGN_ANSWERS: readonly ForeignAnswerCase[] = [
  answer("404 with a page", 404, PAGE, HTML),
  answer("404 without a body", 404, "", {}),
  answer("404 of an API with a message", 404, '{"message":"planted-page"}'),
  answer("404 of an API with error objects", 404, '{"errors":[{"code":"NAME_UNKNOWN"}]}'),
  answer("404 of an API with null errors", 404, '{"errors":null}'),
  answer("404 of an API with no errors and more", 404, '{"errors":[],"message":"planted-page"}'),
  answer("404 of an API with null data", 404, '{"data":{"data":null,"metadata":null}}'),
  answer("404 with a JSON list", 404, "[]"),
  answer("400 with a page", 400, PAGE, HTML),
  answer("401 with a page", 401, PAGE, HTML),
  answer("403 with a page", 403, PAGE, HTML),
  answer("403 of another API", 403, '{"message":"planted-page"}'),
  answer("405 of another API", 405, '{"error":"planted-page"}'),
  answer("413 with a page", 413, PAGE, HTML),
  answer("502 with a page", 502, PAGE, HTML),
  answer("200 with a page", 200, PAGE, HTML),
  answer("200 of another API", 200, '{"status":"ok"}'),
  answer("200 of an API with a request id", 200, '{"request_id":"x","data":{"keys":[],"versions":{}}}'),
  answer("200 with data of another API", 200, '{"data":{"keys":[],"data":{},"versions":{}}}'),
  answer("200 with a JSON list", 200, "[]"),
  answer("200 without a body", 200, ""),
  answer("204", 204, "", {}),
  answer("202 with an envelope", 202, '{"request_id":"x","lease_id":"","data":{}}'),
  answer("301 to a sign-in page", 301, "", { location: "/sign-in" }),
  answer("302 to a sign-in page", 302, PAGE, { location: "http://127.0.0.1:1/sign-in" }),
  answer("307 to a sign-in page", 307, "", { location: "/sign-in" }),
  answer("200 with bytes that are not gzip", 200, Buffer.from([0x1f, 0x8b, 8, 0, 0xff, 0xfe, 1, 2]), {
    ...JSON_TYPE,
    "content-encoding": "gzip",
  }),
  answer("200 with half of an answer", 200, '{"request_id":"x","lease_id":"","data":{"data":{"a":"b'),
  answer("404 with half of an answer", 404, '{"errors":['),
  {
    name: "200 whose body breaks off",
    isEmptySuccess: false,
    send: (response) => {
      response.writeHead(200, { ...JSON_TYPE, "content-length": "1000" });
      response.write('{"request_id":"x","data":{', () => response.destroy());
    },
  },
];
