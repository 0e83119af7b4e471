import { execFile } from "node:child_process";
import { createPublicKey, randomBytes } from "node:crypto";
import { globSync } from "node:fs";
import { lstat, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { Secret, systemCode, type Logger } from "@devplat/base";
import type { MtlsSection, Pkcs11Section } from "../../config/sections/store-section.ts";
import { AgentError } from "../../errors.ts";
import type { CertificateKeys, PendingKey } from "./certificate-keys.ts";
import { readIssued, type ClientCertificate, type TokenKey } from "./client-certificate.ts";

const exec = promisify(execFile);

/** A token that is plugged in responds immediately. One that asks for a touch waits for a person. In milliseconds. */
const PROGRAM_LIMIT_MS = 60_000;
/** Folders in which systems keep the engines of OpenSSL 3, such as libp11's. */
const ENGINES = [
  "/usr/lib/*/engines-3/pkcs11.so",
  "/usr/lib64/engines-3/pkcs11.so",
  "/usr/lib/engines-3/pkcs11.so",
];
/** Variable with the module that the engine loads (libp11's documentation). */
const MODULE_VARIABLE = "PKCS11_MODULE_PATH";
const ENGINES_VARIABLE = "OPENSSL_ENGINES";
const ENGINE_NAME = "pkcs11";
const PIN_VARIABLE = "AGENT_TOKEN_PIN";

/**
 * Keys in a PKCS#11 token, which they never leave (`mtls+os`). OpenSSL's engine of libp11 signs with them, in this
 * process for TLS and in `openssl` for the request; `pkcs11-tool` of OpenSC makes and removes them.
 */
export class TokenKeys implements CertificateKeys {
  readonly backend: string;
  readonly #settings: Pkcs11Section;
  readonly #mtls: Pick<MtlsSection, "key_type" | "key_bits">;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #logger: Logger;

  /** @param settings with absolute paths */
  constructor(
    settings: Pkcs11Section,
    mtls: Pick<MtlsSection, "key_type" | "key_bits">,
    environment: NodeJS.ProcessEnv,
    logger: Logger,
  ) {
    this.#settings = settings;
    this.#mtls = mtls;
    this.#environment = environment;
    this.#logger = logger;
    this.backend = `PKCS#11 token "${settings.token}"`;
  }

  async create(commonName: string): Promise<PendingKey> {
    const label = `agent-${randomBytes(8).toString("hex")}`;
    const { key_type: type, key_bits: bits } = this.#mtls;
    const kind = type === "rsa" ? `rsa:${bits ?? 2048}` : bits === 384 ? "EC:secp384r1" : "EC:prime256v1";
    const id = Buffer.from(label).toString("hex");
    await this.#tool("--keypairgen", "--key-type", kind, "--label", label, "--id", id, "--usage-sign");
    const discard = (): Promise<void> => this.#remove(label);
    try {
      const key = await this.keyOf(label);
      const hash = bits === 384 && type === "ec" ? "-sha384" : "-sha256";
      const request = await this.#openssl(key, ["req", "-new", hash, "-subj", subjectOf(commonName)], "-key");
      return { request, certificate: (chain) => readIssued(chain, key, "that the store issued"), discard };
    } catch (error) {
      await discard();
      throw error;
    }
  }

  async forget({ key }: ClientCertificate): Promise<void> {
    if (!(key instanceof Secret)) await this.#remove(key.label);
  }

  /** The name of a token's key for TLS. The engine's module is then loaded for the whole process. */
  async keyOf(label: string): Promise<TokenKey> {
    const folder = this.#engineFolder();
    // OpenSSL reads them when it loads the engine, which happens once.
    process.env[MODULE_VARIABLE] = this.#settings.module;
    process.env[ENGINES_VARIABLE] = folder;
    const pin = encodeURIComponent(await this.#pin());
    return { label, engine: ENGINE_NAME, identifier: new Secret(`${this.#uri(label)}?pin-value=${pin}`) };
  }

  /** @throws AgentError `certificate_unusable` unless the token holds the private key of the certificate */
  async check({ key, publicKey }: ClientCertificate): Promise<void> {
    if (key instanceof Secret) return;
    const pem = await this.#openssl(key, ["pkey", "-pubout"], "-in");
    if (createPublicKey(pem).equals(publicKey)) return;
    throw new AgentError(
      "certificate_unusable",
      `the key in ${this.backend} is not the client certificate's`,
    );
  }

  async #remove(label: string): Promise<void> {
    for (const type of ["privkey", "pubkey"]) {
      await this.#tool("--delete-object", "--type", type, "--label", label).catch((error: unknown) => {
        this.#logger.warn(
          { err: error, label },
          "a key that is used no more could not be removed from its token",
        );
      });
    }
  }

  async #tool(...args: string[]): Promise<void> {
    const { module, token } = this.#settings;
    const pin = await this.#pin();
    const all = [
      "--module",
      module,
      "--token-label",
      token,
      "--login",
      "--pin",
      `env:${PIN_VARIABLE}`,
      ...args,
    ];
    await this.#run("pkcs11-tool", all, { [PIN_VARIABLE]: pin });
  }

  async #openssl(
    { label }: TokenKey,
    [command = "", ...args]: readonly string[],
    keyOption: "-in" | "-key",
  ): Promise<string> {
    const form = keyOption === "-in" ? "-inform" : "-keyform";
    const key = [form, "engine", keyOption, this.#uri(label), "-passin", `env:${PIN_VARIABLE}`];
    return this.#run("openssl", [command, "-engine", ENGINE_NAME, ...key, ...args], {
      [MODULE_VARIABLE]: this.#settings.module,
      [PIN_VARIABLE]: await this.#pin(),
      [ENGINES_VARIABLE]: this.#engineFolder(),
    });
  }

  /** RFC 7512. */
  #uri(label: string): string {
    return `pkcs11:token=${encodeURIComponent(this.#settings.token)};object=${encodeURIComponent(label)};type=private`;
  }

  /** The text on standard output. What a program says of a failure is not passed on: it may quote its arguments. */
  async #run(program: string, args: readonly string[], more: NodeJS.ProcessEnv): Promise<string> {
    try {
      const env = { ...this.#environment, AGENT_TOKEN: undefined, ...more };
      return (await exec(program, [...args], { env, timeout: PROGRAM_LIMIT_MS })).stdout;
    } catch (error) {
      const missing = systemCode(error) === "ENOENT";
      const { module, pin_file: pinFile } = this.#settings;
      throw new AgentError(
        "certificate_unusable",
        missing
          ? `mtls+os needs ${program}, which is not installed`
          : `${this.backend} does not do what ${program} asks`,
        {
          hint: missing
            ? "On Debian: apt-get install opensc openssl libengine-pkcs11-openssl"
            : `Check that the token is there, ${module} is its module, and ${pinFile} holds its PIN.`,
        },
      );
    }
  }

  /** The user PIN; it is never an argument, which others could read. @throws AgentError `certificate_unusable` if others can read its file */
  async #pin(): Promise<string> {
    const path = this.#settings.pin_file;
    const refuse = (reason: string): AgentError =>
      new AgentError("certificate_unusable", `cannot use the PIN file ${path}: ${reason}`);
    try {
      if (((await lstat(path)).mode & 0o077) !== 0) throw refuse("others can read or write it");
      return (await readFile(path, "utf8")).trim();
    } catch (error) {
      if (error instanceof AgentError) throw error;
      throw refuse(`it cannot be read (${systemCode(error) ?? "unknown error"})`);
    }
  }

  #engineFolder(): string {
    const found = this.#settings.engine ?? ENGINES.flatMap((pattern) => globSync(pattern))[0];
    if (found !== undefined) return dirname(found);
    throw new AgentError(
      "certificate_unusable",
      "mtls+os needs OpenSSL's engine for PKCS#11, which is not installed",
      {
        hint: "On Debian: apt-get install libengine-pkcs11-openssl. Elsewhere name it in store.mtls.pkcs11.engine.",
      },
    );
  }
}

/** `/CN=…` with what has a meaning there escaped. */
function subjectOf(commonName: string): string {
  return `/CN=${commonName.replace(/[\\/+=]/g, "\\$&")}`;
}
