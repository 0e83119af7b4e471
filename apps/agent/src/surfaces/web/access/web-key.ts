import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { Secret, writeAtomically } from "@devplat/base";

/** Files in the runtime folder while the daemon runs: the key alone, and `http://host:port` alone. */
export const WEB_KEY_FILE = "web.key";
const WEB_URL_FILE = "web.url";

/**
 * The key by which our own command line proves that it belongs to the daemon's user, if the system does not show that.
 * It is new at each start, readable by the user only (0600), and removed when the daemon stops.
 */
export class WebKey {
  readonly #folder: string;
  readonly #key = randomBytes(32).toString("base64url");

  /** @param runtimeFolder exists already, with mode 0700 */
  constructor(runtimeFolder: string) {
    this.#folder = runtimeFolder;
  }

  /** @param url where the daemon listens, as `http://host:port` */
  async publish(url: string): Promise<void> {
    await writeAtomically(join(this.#folder, WEB_KEY_FILE), `${this.#key}\n`, { mode: 0o600 });
    await writeAtomically(join(this.#folder, WEB_URL_FILE), `${url}\n`, { mode: 0o600 });
  }

  /** Removes the files, unless another daemon has replaced them. */
  async withdraw(): Promise<void> {
    const current = await readWebAccess(this.#folder).catch(() => undefined);
    if (current?.key.reveal() !== this.#key) return;
    await rm(join(this.#folder, WEB_URL_FILE), { force: true });
    await rm(join(this.#folder, WEB_KEY_FILE), { force: true });
  }

  /** Whether an `Authorization` header carries the key (RFC 6750 section 2.1). */
  opens(authorization: string | undefined): boolean {
    const given = /^Bearer ([\w-]{1,128})$/i.exec(authorization ?? "")?.[1];
    return given !== undefined && timingSafeEqual(digest(given), digest(this.#key));
  }
}

/** Address and key that a running daemon has published. Rejects with a system error if there are none. */
export async function readWebAccess(runtimeFolder: string): Promise<{ url: string; key: Secret }> {
  const url = await readFile(join(runtimeFolder, WEB_URL_FILE), "utf8");
  const key = await readFile(join(runtimeFolder, WEB_KEY_FILE), "utf8");
  return { url: url.trim(), key: new Secret(key.trim()) };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
