#!/bin/sh
# Start of the S3 server in its container: makes the bucket, and reads the credentials from files.
set -eu
mkdir -p "/data/buckets/$BUCKET" /data/metadata
ROOT_ACCESS_KEY_ID=$(cat /run/secrets/cache.object_access_key_id)
ROOT_SECRET_ACCESS_KEY=$(cat /run/secrets/cache.object_secret_access_key)
export ROOT_ACCESS_KEY_ID ROOT_SECRET_ACCESS_KEY
exec versitygw --port :7070 --region us-east-1 --health /health --quiet --keep-alive \
  posix --sidecar /data/metadata /data/buckets
