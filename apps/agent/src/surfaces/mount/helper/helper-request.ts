import { AgentError } from "../../../errors.ts";
import type { HelperRequest } from "../device/mount-helper.ts";

const MIN_READ_BYTES = 4096;
const MAX_READ_BYTES = 1024 * 1024;

/** Reads a request from a line of JSON. @throws AgentError `mount_failed` */
export function parseRequest(line: string): HelperRequest {
  const { action, path, maxReadBytes, lazy } = parseObject(line);
  if (typeof path === "string" && path.startsWith("/") && !path.includes("\0")) {
    if (action === "unmount" && typeof lazy === "boolean") return { action, path, lazy };
    if (action === "mount" && isReadSize(maxReadBytes)) return { action, path, maxReadBytes };
  }
  throw new AgentError("mount_failed", "the mount helper does not understand the request");
}

function parseObject(line: string): Partial<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function isReadSize(value: unknown): value is number {
  return (
    typeof value === "number" &&
    Number.isSafeInteger(value) &&
    value >= MIN_READ_BYTES &&
    value <= MAX_READ_BYTES
  );
}
