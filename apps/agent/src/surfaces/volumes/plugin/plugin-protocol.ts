import { SecretStoreError } from "@devplat/secret-store";
import { z } from "zod";
import { AgentError, publicMessage } from "../../../errors.ts";
import { VolumeError } from "../errors/volume-error.ts";

/** Type of all bodies (Docker's documentation, "Docker Plugin API"). */
export const PLUGIN_CONTENT_TYPE = "application/vnd.docker.plugins.v1.1+json";

/** The container engine that sends a request. */
export interface Caller {
  /** It runs as root, so that everybody who may use it can ask for any secret. */
  readonly isRootful: boolean;
}

/** A volume in the responses to Get and List. */
export interface VolumeEntry {
  readonly name: string;
  /** Absolute path on this host. */
  readonly mountpoint: string;
}

/** The calls of the volume plugin protocol, version 1. All throw VolumeError, and other errors for faults. */
export interface VolumeDriver {
  create(name: string, options: Readonly<Record<string, string>>, caller: Caller): Promise<void>;
  /** Does nothing if there is no such volume. */
  remove(name: string): Promise<void>;
  /** @param id of the mount: a repeated call with one ID counts once @returns the mountpoint */
  mount(name: string, id: string, caller: Caller): Promise<string>;
  /** Does nothing if the mount or the volume is not known. */
  unmount(name: string, id: string): Promise<void>;
  get(name: string): VolumeEntry;
  list(): readonly VolumeEntry[];
}

/** Response to a call. */
export interface PluginResponse {
  readonly status: number;
  readonly document: object;
}

const nameBody = z.object({ Name: z.string() });
const createBody = nameBody.extend({ Opts: z.record(z.string(), z.string()).nullish() });
const mountBody = nameBody.extend({ ID: z.string().min(1).max(1024) });

type Call = (driver: VolumeDriver, body: unknown, caller: Caller) => Promise<object> | object;

const CALLS: ReadonlyMap<string, Call> = new Map<string, Call>([
  ["/Plugin.Activate", () => ({ Implements: ["VolumeDriver"] })],
  ["/VolumeDriver.Capabilities", () => ({ Capabilities: { Scope: "local" } })],
  [
    "/VolumeDriver.Create",
    async (driver, body, caller) => {
      const { Name, Opts } = parse(createBody, body);
      await driver.create(Name, Opts ?? {}, caller);
      return {};
    },
  ],
  [
    "/VolumeDriver.Remove",
    async (driver, body) => {
      await driver.remove(parse(nameBody, body).Name);
      return {};
    },
  ],
  [
    "/VolumeDriver.Mount",
    async (driver, body, caller) => {
      const { Name, ID } = parse(mountBody, body);
      return { Mountpoint: await driver.mount(Name, ID, caller) };
    },
  ],
  [
    "/VolumeDriver.Unmount",
    async (driver, body) => {
      const { Name, ID } = parse(mountBody, body);
      await driver.unmount(Name, ID);
      return {};
    },
  ],
  [
    "/VolumeDriver.Path",
    (driver, body) => ({ Mountpoint: driver.get(parse(nameBody, body).Name).mountpoint }),
  ],
  ["/VolumeDriver.Get", (driver, body) => ({ Volume: document(driver.get(parse(nameBody, body).Name)) })],
  ["/VolumeDriver.List", (driver) => ({ Volumes: driver.list().map(document) })],
]);

/**
 * Responds to one request. Never rejects: a failure is `{Err}`, with a status other than 200, because Docker and Podman read
 * `Err` only then.
 *
 * @param text body of the request; an empty one is an empty object
 * @param onFault is told an error that is a fault of this program
 */
export async function respondToCall(
  driver: VolumeDriver,
  { path, text, caller }: { readonly path: string; readonly text: string; readonly caller: Caller },
  onFault: (error: unknown) => void,
): Promise<PluginResponse> {
  const call = CALLS.get(path);
  if (call === undefined)
    return failure(404, `this volume plugin has no call ${JSON.stringify(path.slice(0, 100))}`);
  try {
    return { status: 200, document: { ...(await call(driver, readJson(text), caller)), Err: "" } };
  } catch (error) {
    const isExpected = [VolumeError, AgentError, SecretStoreError].some((kind) => error instanceof kind);
    if (!isExpected) onFault(error);
    return failure(
      error instanceof VolumeError && error.code === "request_invalid" ? 400 : 500,
      publicMessage(error),
    );
  }
}

/** Response to a request that is refused. */
export function failure(status: number, message: string): PluginResponse {
  return { status, document: { Err: message } };
}

function document({ name, mountpoint }: VolumeEntry): object {
  return { Name: name, Mountpoint: mountpoint, Status: {} };
}

function readJson(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new VolumeError("request_invalid", "the body of the request is not JSON");
  }
}

function parse<T>(schema: z.ZodType<T>, body: unknown): T {
  const { success, data, error } = schema.safeParse(body);
  if (success) return data;
  const place = error.issues[0]?.path.join(".") ?? "";
  throw new VolumeError(
    "request_invalid",
    `the body of the request has no usable ${place === "" ? "object" : place}`,
  );
}
