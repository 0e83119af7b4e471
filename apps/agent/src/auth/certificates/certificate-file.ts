import { Secret, systemCode, writeAtomically } from "@devplat/base";
import { lstat, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureFolder } from "../../agent-files/places.ts";
import { AgentError } from "../../errors.ts";
import { SEAL_MARKER, type Sealer } from "../token/token-file.ts";
import { readCertificate, readIssued, type ClientCertificate } from "./client-certificate.ts";
import type { TokenKeys } from "./token-keys.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g;
/** Replaces a private key that is in a token: the label of the key in that token. */
const IN_TOKEN = /^pkcs11-object: ([\w-]+)\n/;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*PRIVATE KEY-----\n?/;

/** Storage of the client certificate. */
export interface CertificateStore {
  /** For messages. */
  readonly place: string;
  read(): Promise<ClientCertificate | undefined>;
}

/** Our own: certificate and key in one file (0600), so that one rename replaces both. */
export class CertificateFile implements CertificateStore {
  readonly place: string;
  readonly #folder: string;
  readonly #sealer: Sealer | undefined;
  readonly #tokenKeys: TokenKeys | undefined;

  /** @param options `sealer` seals the key (mtls+tpm); `tokenKeys` holds it itself (mtls+os) */
  constructor(
    folder: string,
    {
      sealer,
      tokenKeys,
    }: { readonly sealer?: Sealer | undefined; readonly tokenKeys?: TokenKeys | undefined } = {},
  ) {
    this.#folder = folder;
    this.#sealer = sealer;
    this.#tokenKeys = tokenKeys;
    this.place = join(folder, "client.pem");
  }

  /** @throws AgentError `certificate_unusable` */
  async read(): Promise<ClientCertificate | undefined> {
    const text = await readPrivate(this.place);
    if (text === undefined) return undefined;
    const chain = (text.match(CERTIFICATE) ?? []).join("");
    if (this.#tokenKeys === undefined) return readCertificate(chain, await this.#keyOf(text), this.place);
    const label = IN_TOKEN.exec(text)?.[1];
    if (label === undefined)
      throw unreadable(this.place, "its key is not in a token (store.auth_method is mtls+os)");
    const certificate = readIssued(chain, await this.#tokenKeys.keyOf(label), this.place);
    await this.#tokenKeys.check(certificate);
    return certificate;
  }

  async write({ chain, key }: ClientCertificate): Promise<void> {
    await ensureFolder(this.#folder);
    const kept = await this.#kept(key);
    await writeAtomically(this.place, `${kept}\n${chain.trim()}\n`);
  }

  async #kept(key: ClientCertificate["key"]): Promise<string> {
    if (!(key instanceof Secret)) return `pkcs11-object: ${key.label}`;
    return this.#sealer === undefined ? key.reveal().trim() : this.#sealer.seal(key);
  }

  async #keyOf(text: string): Promise<Secret> {
    if (IN_TOKEN.test(text)) {
      throw unreadable(this.place, "its key is in a token, and store.auth_method is not mtls+os");
    }
    if (!text.startsWith(SEAL_MARKER)) return new Secret(PRIVATE_KEY.exec(text)?.[0] ?? "");
    if (this.#sealer !== undefined) return this.#sealer.unseal(text.split("\n", 1)[0] ?? "");
    throw unreadable(
      this.place,
      "its key is sealed to this host's TPM, and store.auth_method is not mtls+tpm",
    );
  }
}

/** The user's own (`store.mtls.byo`), which is only read. */
export class OwnCertificate implements CertificateStore {
  readonly place: string;
  readonly #keyPath: string;

  constructor(certificatePath: string, keyPath: string) {
    this.place = certificatePath;
    this.#keyPath = keyPath;
  }

  /** @throws AgentError `certificate_unusable` */
  async read(): Promise<ClientCertificate | undefined> {
    const key = await readPrivate(this.#keyPath);
    let chain: string;
    try {
      chain = await readFile(this.place, "utf8");
    } catch (error) {
      throw unreadable(this.place, `it cannot be read (${systemCode(error) ?? "unknown error"})`);
    }
    if (key === undefined) throw unreadable(this.#keyPath, "there is no such file");
    return readCertificate(chain, new Secret(key), this.place);
  }
}

/** A file that nobody else can read; undefined if there is none. */
async function readPrivate(path: string): Promise<string | undefined> {
  try {
    if (process.platform !== "win32") {
      const found = await lstat(path);
      if (found.isFile() && (found.mode & 0o077) !== 0) throw unreadable(path, "others can read or write it");
    }
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof AgentError) throw error;
    if (systemCode(error) === "ENOENT") return undefined;
    throw unreadable(path, `it cannot be read (${systemCode(error) ?? "unknown error"})`);
  }
}

function unreadable(path: string, reason: string): AgentError {
  return new AgentError(
    "certificate_unusable",
    `cannot use the client certificate's file ${path}: ${reason}`,
  );
}
