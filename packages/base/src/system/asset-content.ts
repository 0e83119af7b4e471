import { readFileSync } from "node:fs";

/** Content of a file, or of a data URL, which a release bundle has instead of files. */
export function assetContent(url: URL): Buffer {
  if (url.protocol !== "data:") return readFileSync(url);
  return Buffer.from(url.pathname.slice(url.pathname.indexOf(",") + 1), "base64");
}
