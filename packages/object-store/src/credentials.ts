import { Secret } from "@devplat/base";
import { ObjectStoreError } from "./errors.ts";

/** Credentials of AWS. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  /** Set for temporary credentials. */
  readonly sessionToken: Secret | undefined;
}

/** Source of credentials. */
export interface CredentialSource {
  /**
   * Credentials that are valid now.
   *
   * @param renew whether the store refused the ones of the last call
   * @throws ObjectStoreError `credentials_missing`
   */
  current(renew?: boolean): Promise<Credentials>;
}

/** A pair of keys that does not change, such as `SVC_CACHE_OBJECT_ACCESS_KEY_ID` with its secret. */
export function fixedCredentials(accessKeyId: string, secretAccessKey: Secret): CredentialSource {
  const credentials = { accessKeyId, secretAccessKey, sessionToken: undefined };
  return { current: () => Promise.resolve(credentials) };
}

/**
 * The standard chain of AWS: environment, profile files, web identity, container and instance metadata. The library loads with
 * the first use. It keeps credentials until five minutes before their end.
 *
 * It reads the environment and the files of this process by itself, as every program of AWS does.
 */
export function awsChain(): CredentialSource {
  // A refresh must use the same provider, which holds what is still valid.
  const provider = async (): ReturnType<typeof load> => (loaded ??= await load());
  let loaded: Awaited<ReturnType<typeof load>> | undefined;
  return {
    async current(renew = false) {
      const provide = await provider();
      let found;
      try {
        found = await provide({ forceRefresh: renew });
      } catch (cause) {
        // Messages of the sources may quote responses and files.
        throw new ObjectStoreError(
          "credentials_missing",
          "Cannot get credentials for the object store: no source of the AWS chain has usable ones",
          {
            cause: nameOnly(cause),
            hint: "set the two keys of the object store, or AWS_PROFILE, a web identity or a role of this machine",
          },
        );
      }
      return {
        accessKeyId: found.accessKeyId,
        secretAccessKey: new Secret(found.secretAccessKey),
        sessionToken: found.sessionToken === undefined ? undefined : new Secret(found.sessionToken),
      };
    },
  };
}

async function load() {
  const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
  return defaultProvider();
}

function nameOnly(error: unknown): Error {
  return new Error(error instanceof Error ? error.name : "unknown");
}
