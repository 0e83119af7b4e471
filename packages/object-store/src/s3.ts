import type { Clock } from "@devplat/base";
import type { CredentialSource } from "./credentials.ts";
import { S3Address, type S3Location } from "./s3-address.ts";
import { S3Connections, type ConnectionSettings } from "./s3-connections.ts";
import { S3ObjectStore, type S3ObjectStoreOptions } from "./s3-object-store.ts";
import { S3Requests } from "./s3-requests.ts";

export interface S3Settings extends S3Location, ConnectionSettings, S3ObjectStoreOptions {
  readonly credentials: CredentialSource;
  readonly clock?: Clock;
}

/** A bucket behind the S3 protocol. Nothing is sent before the first call. @throws ObjectStoreError `refused` */
export function openS3Store(settings: S3Settings): S3ObjectStore {
  const address = new S3Address(settings);
  const connections = new S3Connections(address.origin, settings);
  const requests = new S3Requests(address, connections, settings.credentials, settings.clock);
  return new S3ObjectStore(requests, connections, settings);
}
