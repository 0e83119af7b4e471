/** Adds responses to a manifest until it is killed: `SETTINGS WRITER`. Prints the key of each one that is written. */
import { Secret } from "@devplat/base";
import { fixedCredentials } from "@devplat/object-store";
import { openS3Store } from "@devplat/object-store/s3";
import {
  REPOSITORY,
  adding,
  openManifests,
  someResponse,
} from "../../apps/svc/src/cache/object-tier/manifest/manifest.test-kit.ts";

const { endpoint, bucket, region, accessKeyId, secretAccessKey } = JSON.parse(
  process.argv[2] ?? "{}",
) as Record<"endpoint" | "bucket" | "region" | "accessKeyId" | "secretAccessKey", string>;
const store = openS3Store({
  endpoint,
  bucket,
  region,
  credentials: fixedCredentials(accessKeyId, new Secret(secretAccessKey)),
  timeoutMs: 20_000,
});
const { manifests } = openManifests(store, { writer: process.argv[3] ?? "" });
for (;;) {
  const added = [someResponse(), someResponse()];
  await Promise.all(
    added.map(async (response) => {
      await manifests.update(REPOSITORY, { epoch: 0 }, adding(response));
      process.stdout.write(`${response.key}\n`);
    }),
  );
}
