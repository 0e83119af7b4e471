import { lstat } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { exists, messageOf, systemCode } from "@devplat/base";
import type { Outcome } from "@devplat/cli/findings";
import { boundedRequest, jsonOf, type HttpResponse } from "@devplat/http-client";
import { PROBLEM_MEDIA_TYPE } from "@devplat/web-kit/problem";
import { accelGroupId } from "../../assemble/accel.ts";
import { HANDED_FOLDER } from "../../cache/responses/response-folders.ts";
import { cacheFolder } from "../../config/cache-folder.ts";
import type { Config } from "../../config/schema.ts";
import { ACCEL_HEADER, ACCEL_LOCATION } from "../../http/accel/accel.ts";
import { closedFolder } from "../../http/accel/group-access.ts";
import { PROBE_PATH, writeProbeFile, type ProbeFile, type ProbeResult } from "../../http/accel/probe-file.ts";
import { serviceState } from "./service-state.ts";

/** Milliseconds that the web server gets to answer. */
const ANSWER_MS = 5000;
/** Maximum bytes of its answer: the probe, or an error page. */
const MAX_BYTES = 1024 * 1024;
/** Status of a web server that does not reach the service. */
const NO_SERVICE: ReadonlySet<number> = new Set([502, 503, 504]);

/** Parts of the configuration that the checks of `server.accel` read. */
interface Checked {
  readonly config: Config;
  /** Name of the web server, in messages. */
  readonly kind: string;
  /** The folder from which it sends. */
  readonly folder: string;
  readonly groupId: number | undefined;
}

/** Result of a probe. `untried`: the reason why the web server was not tried. */
type Probed =
  | { readonly kind: "sent" }
  | { readonly kind: "untried"; readonly reason: string }
  | { readonly kind: "unreadable"; readonly fault: string }
  | { readonly kind: "fault"; readonly fault: string };

/**
 * Whether the web server that `server.accel` names sends files: it is asked for a probe, which must come back unchanged.
 *
 * @param url of the web server. Undefined: `server.base_url`
 * @throws SvcError `config_refused`
 */
export async function accelFinding(config: Config, url: string | undefined): Promise<Outcome> {
  const { server, cache } = config;
  if (!cache.enabled) return { warning: "server.accel has no effect without cache.enabled" };
  const folder = join(cacheFolder(config), HANDED_FOLDER);
  const checked = { config, kind: server.accel ?? "", folder, groupId: await accelGroupId(config) };
  const address = url ?? server.base_url;
  const probed = await probe(checked, address);
  if (probed.kind === "sent") return `${checked.kind} at ${address} sends files of ${folder}`;
  if (probed.kind === "fault") return { fault: probed.fault };
  const closed = await closedFault(checked);
  if (probed.kind === "unreadable")
    return { fault: closed === undefined ? probed.fault : `${probed.fault}. ${closed}` };
  const untried = `not tried whether ${checked.kind} can send files: ${probed.reason}`;
  return closed === undefined ? { warning: untried } : { fault: `${closed} (${untried})` };
}

/** A fault that the permissions of folders show, without a request. */
async function closedFault({ config, kind, folder, groupId }: Checked): Promise<string | undefined> {
  const group = config.cache.accel_group;
  if (group === undefined || groupId === undefined) return undefined;
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  if (process.getuid?.() !== 0 && !groups.includes(groupId)) {
    const { username } = userInfo();
    return `the user ${username} is not a member of the group ${group}, so that svc cannot give files to it: run usermod -aG ${group} ${username}, and restart svc`;
  }
  const storagePath = dirname(folder);
  const isMade = await exists(folder);
  // The service opens its own two folders at its start.
  const closed = await closedFolder(isMade ? folder : dirname(storagePath), groupId);
  if (closed === undefined) return undefined;
  const cause = `the group ${group} cannot reach ${folder}, so that clients get 403 or 404 of ${kind}: ${closed} is closed to it`;
  return closed === folder || closed === storagePath
    ? `${cause}. Restart svc, which opens it`
    : `${cause}. Run chmod o+x on it, or use another cache.storage_path`;
}

async function probe(checked: Checked, address: string | undefined): Promise<Probed> {
  const { config, folder, groupId } = checked;
  if (address === undefined) {
    return {
      kind: "untried",
      reason: "server.base_url is not set: give the address of the web server with --accel-url",
    };
  }
  const state = await serviceState(config);
  if (state.kind === "stopped")
    return { kind: "untried", reason: "svc is not running; start it, and try again" };
  if (!(await exists(folder))) {
    return { kind: "untried", reason: `${folder} is not there yet: restart svc, which makes it` };
  }
  const isFolder = (await lstat(folder).catch(() => undefined))?.isDirectory() === true;
  if (!isFolder)
    return {
      kind: "fault",
      fault: `${folder} is a symbolic link or a file, so that svc sends the responses itself: remove it`,
    };
  let file: ProbeFile;
  try {
    file = await writeProbeFile(folder, groupId);
  } catch (error) {
    const reason = `a probe cannot be written to ${folder} (${systemCode(error) ?? "unknown"}): run svc doctor as the user of svc, or as root`;
    return { kind: "untried", reason };
  }
  try {
    return await ask(checked, address, file);
  } finally {
    await file.remove();
  }
}

async function ask(checked: Checked, address: string, { name, content }: ProbeFile): Promise<Probed> {
  const base = checked.config.server.base_url;
  let response: HttpResponse;
  try {
    response = await boundedRequest(new URL(PROBE_PATH + name, address), {
      headers: base === undefined ? {} : { host: new URL(base).host },
      // The certificate may be for a name that this machine does not use. The probe is not secret.
      tls: { rejectUnauthorized: false },
      timeoutMs: ANSWER_MS,
      maxBytes: MAX_BYTES,
    });
  } catch (error) {
    const reason = `${address} cannot be reached from here (${messageOf(error)}): give an address that can be with --accel-url`;
    return { kind: "untried", reason };
  }
  if (response.status === 200 && response.body.equals(content)) return { kind: "sent" };
  return faultOf(checked, address, response);
}

/** The likely causes of a response that is not the probe. */
function faultOf({ config, kind, folder }: Checked, address: string, response: HttpResponse): Probed {
  const { status, headers, body } = response;
  const fault = (text: string): Probed => ({ kind: "fault", fault: text });
  const { refused } = Object(status === 200 ? jsonOf(response) : undefined) as Partial<ProbeResult>;
  switch (refused) {
    case "missing":
      return fault(
        `the request to ${address} came without ${ACCEL_HEADER}: set the header in the configuration of ${kind}, and reload it; or ${address} does not lead to ${kind}`,
      );
    case "secret":
      return fault(
        `${kind} sends a wrong ${ACCEL_HEADER}: set the value of server.accel_secret in its configuration, and reload it`,
      );
    case "peer":
      return fault(
        `${kind} does not connect to svc over a loopback address or a Unix socket: change the address of svc in its configuration`,
      );
    case "location":
      return fault(
        `${kind} passed ${ACCEL_LOCATION} on to svc: the internal location in its configuration has another name`,
      );
    default:
  }
  if (headers["x-accel-redirect"] !== undefined) {
    return fault(
      `${address} did not follow X-Accel-Redirect: it does not lead to ${kind}, or the part of its configuration that handles this header is missing`,
    );
  }
  if (status === 200) {
    const coding = headers["content-encoding"] ?? "none";
    return fault(
      `${kind} sent other bytes than those of the file (${body.length} bytes, content encoding ${coding}): turn off compression and filters for ${ACCEL_LOCATION}`,
    );
  }
  if (headers["content-type"]?.startsWith(PROBLEM_MEDIA_TYPE) === true || status === 421) {
    // Behind a load balancer, other instances answer, too.
    const reason = `the service behind ${address} does not know the probe in ${folder} (${status}): it is another instance, uses another cache folder, or was started before server.accel was set. Give the address of the web server of this machine with --accel-url`;
    return { kind: "untried", reason };
  }
  if (NO_SERVICE.has(status)) {
    return fault(
      `${kind} at ${address} answers ${status}: it does not reach svc at server.listen, or svc does not run`,
    );
  }
  const group = config.cache.accel_group;
  const member = group === undefined ? "run as the user of svc" : `be a member of the group ${group}`;
  if (status === 403) {
    const restart = group === undefined ? "" : `, and ${kind} must be restarted after usermod`;
    return {
      kind: "unreadable",
      fault: `${kind} at ${address} answers 403, because it cannot read the file: its user must ${member}${restart}`,
    };
  }
  if (status === 404) {
    const setting =
      kind === "nginx" ? `alias must be ${folder}/` : `root must be ${folder}, and strip_prefix /_svc_accel`;
    return {
      kind: "unreadable",
      fault: `${kind} at ${address} answers 404, because it finds no file: in its configuration, ${setting}`,
    };
  }
  return fault(`${address} answers ${status} in the place of the file: see the error log of ${kind}`);
}
