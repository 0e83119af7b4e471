import { Secret, type Clock, type Logger } from "@devplat/base";
import { SecretStoreError, type VaultClient } from "@devplat/secret-store";
import { BRAND } from "../../brand.ts";
import type { MtlsSection } from "../../config/sections/store-section.ts";
import { AgentError, publicMessage } from "../../errors.ts";
import type { CertificateStatus } from "../../status.ts";
import { traced } from "../../telemetry/operation.ts";
import type { Adopted, Adoption, AdoptOptions } from "../token/adoption.ts";
import type { CertificateFile, CertificateStore } from "./certificate-file.ts";
import type { CertificateKeys } from "./certificate-keys.ts";
import type { ClientCertificate } from "./client-certificate.ts";
import { MAX_COMMON_NAME } from "./signing-request.ts";

export interface CertificatesParts {
  /** Without a client certificate. */
  readonly client: VaultClient;
  /** A client that presents the certificate; the caller closes it. */
  readonly connect: (certificate: ClientCertificate) => VaultClient;
  readonly adoption: Adoption;
  readonly stored: CertificateStore;
  /** File for new certificates; undefined for the user's own certificate, which is never replaced. */
  readonly file: CertificateFile | undefined;
  readonly keys: CertificateKeys;
  readonly settings: MtlsSection;
  readonly username: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The client certificate: its one-time bootstrap, the login by it, and its timely replacement. */
export class Certificates {
  readonly #parts: CertificatesParts;
  /** Whether the last look found no certificate to sign in with. */
  #isMissing = false;

  constructor(parts: CertificatesParts) {
    this.#parts = parts;
  }

  /** Whether the one-time bootstrap is due, and the login that it takes; from the last look at the certificate. */
  bootstrapState(): { readonly active: boolean; readonly method: "oidc" | "ldap" | null } {
    // The user's own certificate is not ours to make.
    const active = this.#isMissing && this.#parts.file !== undefined;
    return { active, method: active ? this.#parts.settings.bootstrap_method : null };
  }

  /** The certificate for the status. It does not sign in. */
  async describe(): Promise<CertificateStatus> {
    const { keys, file } = this.#parts;
    const backend = file === undefined ? "file of your own" : keys.backend;
    try {
      const { subject, notAfter } = await this.current();
      return {
        enrolled: true,
        identity: subject,
        backend,
        expires_at: new Date(notAfter).toISOString(),
        fault: null,
      };
    } catch (error) {
      return { enrolled: false, identity: null, backend, expires_at: null, fault: publicMessage(error) };
    }
  }

  /** The stored certificate. @throws AgentError `certificate_unusable` if there is none, or none that is valid now */
  async current(): Promise<ClientCertificate> {
    const { stored, clock } = this.#parts;
    const certificate = await stored.read();
    const fault =
      certificate === undefined
        ? "there is no client certificate yet"
        : certificate.notAfter <= clock.now()
          ? `the client certificate ended at ${new Date(certificate.notAfter).toISOString()}`
          : undefined;
    this.#isMissing = fault !== undefined;
    if (certificate !== undefined && fault === undefined) return certificate;
    const hint =
      this.#parts.file === undefined ? `Put one to ${stored.place}.` : `Run '${BRAND.command} login' once.`;
    throw new AgentError("certificate_unusable", fault ?? "", { hint });
  }

  /** Signs in with the stored certificate. @throws AgentError `certificate_unusable` | those of {@link Adoption.adopt} */
  async login(options: AdoptOptions): Promise<Adopted> {
    const token = await this.#loginWith(await this.current(), options.signal);
    return this.#parts.adoption.adopt(token, options);
  }

  /**
   * Gets the first certificate with the token of a login, which is used for that alone and then ended, and signs in
   * with it.
   */
  async bootstrap(token: Secret, options: AdoptOptions): Promise<Adopted> {
    const { client, logger, stored, keys } = this.#parts;
    const old = await stored.read().catch(() => undefined);
    try {
      const { login } = await this.#issue(token, options.signal);
      if (old !== undefined) await keys.forget(old);
      return await this.#parts.adoption.adopt(login, options);
    } finally {
      await client.revokeSelf({ token }).catch((error: unknown) => {
        logger.warn({ err: error }, "the bootstrap token could not be revoked; it ends by itself");
      });
    }
  }

  /**
   * Replaces the certificate when its end is near: new key, new certificate proven by a login, then stored, then the
   * old one revoked. Gives whether it did.
   *
   * @param token of the signed-in user
   */
  async reissueIfDue(token: Secret, signal: AbortSignal): Promise<boolean> {
    const { client, clock, logger, settings, file, stored } = this.#parts;
    if (file === undefined) return false;
    const old = await stored.read();
    if (old === undefined) return false;
    // One that lives shorter than `reissue_before` would be replaced at every look.
    const before = Math.min(settings.reissue_before, (old.notAfter - old.notBefore) / 2);
    if (old.notAfter - clock.now() > before) return false;
    const { certificate, login } = await traced("auth.certificate", {}, () => this.#issue(token, signal));
    logger.info({ until: new Date(certificate.notAfter).toISOString() }, "client certificate replaced");
    // The token of this login has proven the certificate. The token in use stays.
    await client.revokeSelf({ token: login, signal }).catch(() => undefined);
    if (settings.revoke_superseded) await this.#revoke(old, token, signal);
    await this.#parts.keys.forget(old);
    return true;
  }

  /** A new certificate, proven by a login and stored. Until then the old one is not touched. */
  async #issue(
    token: Secret,
    signal: AbortSignal,
  ): Promise<{ certificate: ClientCertificate; login: Secret }> {
    const { file, stored } = this.#parts;
    if (file === undefined) {
      throw new AgentError(
        "certificate_unusable",
        `the client certificate ${stored.place} is the user's own`,
        {
          hint: "Replace it there: store.mtls.byo is set.",
        },
      );
    }
    const name = (this.#parts.settings.common_name ?? this.#parts.username).slice(0, MAX_COMMON_NAME);
    const key = await this.#parts.keys.create(name);
    try {
      const certificate = key.certificate(await this.#sign(name, key.request, token, signal));
      const login = await this.#loginWith(certificate, signal);
      await file.write(certificate);
      this.#isMissing = false;
      return { certificate, login };
    } catch (error) {
      await key.discard();
      throw error;
    }
  }

  /** The chain that the store issues for a request, PEM. */
  async #sign(name: string, request: string, token: Secret, signal: AbortSignal): Promise<string> {
    const { client, settings } = this.#parts;
    try {
      const response = await client.request({
        method: "POST",
        path: `${settings.pki_mount}/sign/${settings.pki_role ?? ""}`,
        body: JSON.stringify({
          csr: request,
          common_name: name,
          ...(settings.ttl !== undefined && { ttl: `${Math.round(settings.ttl / 1000)}s` }),
        }),
        token,
        signal,
      });
      const data = response.get("data");
      const chain = [
        data.get("certificate").string(),
        ...data.get("ca_chain").or<readonly string[]>([], (part) => part.strings()),
      ];
      return chain.map((pem) => `${pem.trim()}\n`).join("");
    } catch (error) {
      if (!(error instanceof SecretStoreError) || !["denied", "refused"].includes(error.code)) throw error;
      throw new AgentError("certificate_unusable", `the store does not sign a certificate for ${name}`, {
        hint: `The token's policies must allow to update ${settings.pki_mount}/sign/${settings.pki_role ?? ""}, and that role must allow the name, the life and the type of key.`,
      });
    }
  }

  async #loginWith(certificate: ClientCertificate, signal: AbortSignal): Promise<Secret> {
    const { connect, settings } = this.#parts;
    const client = connect(certificate);
    try {
      const response = await client.request({
        method: "POST",
        path: `auth/${settings.cert_mount}/login`,
        body: JSON.stringify(settings.cert_role === undefined ? {} : { name: settings.cert_role }),
        token: null,
        signal,
      });
      return new Secret(response.get("auth").get("client_token").string());
    } catch (error) {
      if (!(error instanceof SecretStoreError) || !["denied", "refused"].includes(error.code)) throw error;
      throw new AgentError("certificate_unusable", "the store does not accept the client certificate", {
        hint: `It may be revoked, no role of auth/${settings.cert_mount} trusts it, or no certificate login is mounted there.`,
      });
    } finally {
      await client.close();
    }
  }

  /**
   * Having the key is the right to revoke (Vault, `revoke-with-key`); for a key that stays in its token the user's
   * policies must allow `revoke`. A failure does no harm to the new certificate.
   */
  async #revoke(old: ClientCertificate, token: Secret, signal: AbortSignal): Promise<void> {
    const { client, settings, logger } = this.#parts;
    const [certificate = ""] = old.chain.split(/(?<=-----END CERTIFICATE-----\n)/);
    const proof =
      old.key instanceof Secret
        ? { path: "revoke-with-key", body: { certificate, private_key: old.key.reveal() } }
        : { path: "revoke", body: { certificate } };
    try {
      await client.request({
        method: "POST",
        path: `${settings.pki_mount}/${proof.path}`,
        body: JSON.stringify(proof.body),
        token,
        repeatable: true,
        signal,
      });
    } catch (error) {
      logger.warn({ err: error, serial: old.serialNumber }, "the replaced certificate could not be revoked");
    }
  }
}
