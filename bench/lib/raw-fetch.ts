import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  EMPTY_FETCH,
  decodeLsRefsResponse,
  encodeCommandRequest,
  encodeFetchRequest,
  encodeLsRefsRequest,
} from "@devplat/git-protocol";
import { run } from "@devplat/testkit";

const CAPABILITIES = ["agent=git/bench", "object-format=sha1"];
/** Parameters of a `fetch` of protocol v2. */
export const HEADERS = [
  "Git-Protocol: version=2",
  "Content-Type: application/x-git-upload-pack-request",
  "Accept: application/x-git-upload-pack-result",
];

/** The body of the `fetch` that a full clone of this repository sends, written to a file for curl. */
export async function recordFullFetch(repositoryUrl: string, folder: string, name: string): Promise<string> {
  const answer = await fetch(`${repositoryUrl}/git-upload-pack`, {
    method: "POST",
    headers: Object.fromEntries(HEADERS.map((header) => header.split(": ") as [string, string])),
    body: new Uint8Array(lsRefsBody()),
  });
  if (!answer.ok) throw new Error(`ls-refs of ${repositoryUrl} answered ${answer.status}`);
  const refs = decodeLsRefsResponse(Buffer.from(await answer.arrayBuffer()));
  const wants = [...new Set(refs.flatMap((ref) => ref.oid ?? []))];
  const body = encodeCommandRequest(encodeFetchRequest({ ...FULL_CLONE, wants }, CAPABILITIES));
  const file = join(folder, `${name}.request`);
  await writeFile(file, body);
  return file;
}

/** Writes an `ls-refs` for all refs to a file for curl. */
export async function recordLsRefs(folder: string): Promise<string> {
  const file = join(folder, "ls-refs.request");
  await writeFile(file, lsRefsBody());
  return file;
}

function lsRefsBody(): Buffer {
  const request = { symrefs: false, peel: false, unborn: false, refPrefixes: [], unknown: [] };
  return encodeCommandRequest(encodeLsRefsRequest(request, CAPABILITIES));
}

const FULL_CLONE = {
  ...EMPTY_FETCH,
  done: true,
  thinPack: true,
  noProgress: true,
  includeTag: true,
  ofsDelta: true,
};

/** Cost of one transfer. */
export interface Transfer {
  readonly seconds: number;
  readonly bytes: number;
}

/**
 * Posts a recorded request with curl, which does nothing with the answer.
 *
 * @param target file for the response; default: discarded
 */
export async function postRaw(repositoryUrl: string, request: string, target?: string): Promise<Transfer> {
  const headers = HEADERS.flatMap((header) => ["-H", header]);
  return curl([...headers, "--data-binary", `@${request}`, `${repositoryUrl}/git-upload-pack`], target);
}

/** Fetches a URL with curl into `target`, or to nowhere. */
export async function curl(args: readonly string[], target = "/dev/null"): Promise<Transfer> {
  const format = "%{http_code} %{time_total} %{size_download}";
  const all = ["-sS", "-o", target, "-w", format, ...args];
  const { stdout, code } = await run("curl", all, { timeoutMs: 600_000 });
  const [status, seconds, bytes] = stdout.split(" ").map(Number);
  if (code !== 0 || status !== 200) throw new Error(`curl ended with ${code}, HTTP status ${status}`);
  return { seconds: seconds ?? 0, bytes: bytes ?? 0 };
}
