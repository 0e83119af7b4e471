import assert from "node:assert/strict";
import { appendFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, beforeEach, describe, it } from "node:test";
import { Secret, systemClock } from "@devplat/base";
import {
  startMinio,
  startS3Proxy,
  startVersityGateway,
  until,
  type S3Proxy,
  type S3RequestKind,
  type VersityGateway,
} from "@devplat/testkit";
import { fixedCredentials } from "./credentials.ts";
import type { ObjectStore } from "./object-store.ts";
import {
  PART_BYTES,
  bytesOf,
  faultWith,
  openTestStore,
  randomFile,
  textOf,
} from "./object-store.test-kit.ts";
import type { S3Settings } from "./s3.ts";

const HOUR_MS = 3_600_000;
const SHORT_MS = 400;

describe("S3ObjectStore behind a proxy with faults", () => {
  let server: VersityGateway;
  let proxy: S3Proxy;
  let store: ObjectStore;
  const stores: ObjectStore[] = [];
  const open = (settings: Partial<S3Settings> = {}): ObjectStore => {
    const opened = openTestStore({ ...server, endpoint: proxy.endpoint }, settings);
    stores.push(opened);
    return opened;
  };
  const put = (text: string, ifMatch?: string) =>
    store.put("object", Buffer.from(text), ifMatch === undefined ? {} : { condition: { ifMatch } });
  const read = async (): Promise<string> => textOf(await openTestStore(server).get("object"));

  before(async () => {
    server = await startVersityGateway({ users: { READER: "reader-secret", WRITER: "writer-secret" } });
    await server.setPolicy({
      READER: ["s3:GetObject", "s3:ListBucket"],
      WRITER: ["s3:PutObject", "s3:GetObject", "s3:ListBucket"],
    });
    proxy = await startS3Proxy(server.endpoint);
    store = open();
  });
  beforeEach(async () => {
    proxy.heal();
    await put("content");
    proxy.resetCounts();
  });
  after(async () => {
    await Promise.all(stores.map((each) => each.close()));
    await proxy.stop();
    await server.stop();
  });

  for (const [title, fault] of Object.entries({
    "a refused connection": { refuse: true },
    "a lost response": { loseResponse: true },
    SlowDown: { status: 503, code: "SlowDown" },
    "an internal error": { status: 500, code: "InternalError" },
    "the page of a gateway": { response: { status: 502, body: "<html>Bad gateway</html>" } },
  } as const)) {
    it(`a read is repeated after ${title}, and gives the object`, async () => {
      proxy.inject(["get", "head", "list"], fault, 1);
      assert.equal(await textOf(await store.get("object")), "content");
      assert.equal(proxy.counts.get, 2);
      assert.equal((await store.head("object")).length, 7);
    });
  }

  it("a store that always fails is given up within the time limit", async () => {
    const short = open({ timeoutMs: SHORT_MS });
    for (const [fault, code] of [
      [{ status: 503, code: "SlowDown" }, "slow_down"],
      [{ status: 500, code: "InternalError" }, "store_failed"],
      [{ refuse: true }, "unreachable"],
      [{ hang: true }, "timeout"],
      [{ delayMs: 10 * SHORT_MS }, "timeout"],
    ] as const) {
      proxy.heal();
      proxy.inject("all", fault);
      const began = performance.now();
      await assert.rejects(short.get("object"), faultWith(code));
      // The limit is 400 ms. Ten times the load must not fail the test.
      assert.ok(performance.now() - began < 10 * SHORT_MS);
    }
  });

  it("a fault of the whole store names bucket and endpoint, one of an object its name", async () => {
    const short = open({ timeoutMs: SHORT_MS });
    const place = `Cannot use the bucket "${server.bucket}" at ${proxy.endpoint}: `;
    for (const [fault, reason] of [
      [{ refuse: true }, "ECONNRESET|UND_ERR_SOCKET|the connection ended"],
      [{ hang: true }, "the time limit is over"],
      [{ status: 503, code: "SlowDown" }, "the store asks for fewer requests \\(SlowDown, status 503\\)"],
      [{ status: 404, code: "NoSuchBucket" }, "there is no such bucket \\(NoSuchBucket, status 404\\)"],
    ] as const) {
      proxy.heal();
      proxy.inject("all", fault);
      const expected = new RegExp(`^(?:${reason}), in an attempt to read the object "object"$`);
      await assert.rejects(short.get("object"), (error: Error) => {
        assert.ok(error.message.startsWith(place), error.message);
        assert.match(error.message.slice(place.length), expected);
        return true;
      });
    }
    proxy.heal();
    await assert.rejects(short.get("none"), { message: /^Cannot read the object "none": it is not there/ });
  });

  it("a store that is gone is unreachable, and is used again when it is back", async () => {
    const short = open({ timeoutMs: SHORT_MS });
    await proxy.goAway();
    try {
      await assert.rejects(short.get("object"), faultWith("unreachable", { outcomeUnknown: false }));
      await assert.rejects(
        short.put("object", Buffer.from("x"), { condition: { ifAbsent: true } }),
        faultWith("unreachable", { outcomeUnknown: false }),
      );
    } finally {
      await proxy.comeBack();
    }
    assert.equal(await textOf(await short.get("object")), "content");
  });

  it("a transfer that is cut or stalls ends the stream with an error", async () => {
    proxy.inject(["get"], { cutAfterBytes: 3 }, 1);
    await assert.rejects(async () => textOf(await store.get("object")), faultWith("unreachable"));
    proxy.inject(["get"], { cutAfterBytes: 0 }, 1);
    await assert.rejects(async () => textOf(await store.get("object")), faultWith("unreachable"));
    assert.equal(await textOf(await store.get("object")), "content");
  });

  it("a transfer that its caller ends fails with the reason of the signal", async () => {
    proxy.inject(["get"], { stallAfterBytes: 3 }, 1);
    const ended = new AbortController();
    const found = await store.get("object", { signal: ended.signal });
    const reason = new Error("enough");
    const reading = bytesOf(found);
    ended.abort(reason);
    await assert.rejects(reading, (error) => error === reason);
  });

  it("wrong bytes are found by their SHA-256, and never end a stream well", async () => {
    const sha256 = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";
    for (const corruptAt of [0, 6]) {
      proxy.inject(["get"], { corruptAt }, 1);
      await assert.rejects(async () => textOf(await store.get("object", { sha256 })), faultWith("damaged"));
    }
    assert.equal(await textOf(await store.get("object", { sha256 })), "content");
  });

  it("bytes that change on the way to the store are refused, and sent again", async () => {
    proxy.inject(["put"], { corruptRequestAt: 2 }, 1);
    const { etag } = await put("second");
    assert.equal(await read(), "second");
    proxy.inject(["put"], { corruptRequestAt: 2 }, 1);
    await put("third", etag);
    assert.equal(await read(), "third");
    const file = await randomFile(PART_BYTES + 100);
    try {
      // A byte of a signature, and one of the content of the first part.
      for (const corruptRequestAt of [50, 3_000_000]) {
        proxy.resetCounts();
        // Once: the same part is not sent a third time after two refused signatures, and may be sent twice before the other.
        proxy.inject(["part"], { corruptRequestAt }, 1);
        await store.putLarge("large", file.path);
        assert.ok((await bytesOf(await store.get("large"))).equals(file.bytes));
        assert.ok(proxy.counts.part >= 3, "it was sent again");
        proxy.heal();
      }
    } finally {
      await file.remove();
    }
  });

  it("a conditional put with a lost response is not repeated: its outcome is unknown", async () => {
    const { etag } = await store.head("object");
    for (const [fault, text] of [
      [{ loseResponse: true }, "second"],
      [{ status: 500, code: "InternalError" }, "content"],
    ] as const) {
      await put("content");
      proxy.resetCounts();
      proxy.inject(["put"], fault, 1);
      const rejected = assert.rejects(put("second", etag), (error) => {
        assert.equal((error as { outcomeUnknown?: boolean }).outcomeUnknown, true);
        return true;
      });
      await rejected;
      assert.equal(proxy.counts.put, 1);
      assert.equal(await read(), text);
    }
  });

  it("a conditional put that the store refused for a moment is repeated", async () => {
    const { etag } = await store.head("object");
    proxy.inject(["put"], { status: 503, code: "SlowDown" }, 2);
    await put("second", etag);
    assert.equal(proxy.counts.put, 3);
    assert.equal(await read(), "second");
  });

  it("a stale read shows the old ETag, and a write over it fails", async () => {
    const old = await store.get("object");
    assert.equal(await textOf(old), "content");
    await put("second");
    proxy.inject(["get"], { stale: true }, 1);
    const stale = await store.get("object");
    assert.ok(stale.modified);
    assert.equal(await textOf(stale), "content");
    await assert.rejects(put("third", stale.etag), faultWith("condition_failed"));
    assert.equal(await read(), "second");
  });

  it("a failed upload is aborted and leaves nothing behind", async () => {
    const file = await randomFile(3 * PART_BYTES);
    try {
      proxy.inject(["part"], { status: 403, code: "AccessDenied" }, 1);
      await assert.rejects(
        store.putLarge("left", file.path),
        faultWith("denied", { permission: "s3:PutObject" }),
      );
      assert.equal(proxy.counts.abort, 1);
      proxy.inject(
        ["complete"],
        { response: { status: 200, body: "<Error><Code>PreconditionFailed</Code></Error>" } },
        1,
      );
      await assert.rejects(store.putLarge("left", file.path), faultWith("condition_failed"));
      assert.deepEqual((await store.listUploads("left")).entries, []);
      await assert.rejects(store.head("left"), faultWith("missing"));
    } finally {
      await file.remove();
    }
  });

  it("an upload whose completion is lost is not aborted, and stays in the list", async () => {
    const file = await randomFile(2 * PART_BYTES);
    try {
      proxy.inject(["complete"], { loseResponse: true }, 1);
      await assert.rejects(
        store.putLarge("lost", file.path),
        faultWith("unreachable", { outcomeUnknown: true }),
      );
      assert.ok((await bytesOf(await store.get("lost"))).equals(file.bytes));
      const remove = proxy.inject(["complete"], { response: { status: 500, body: "" } });
      for (const key of ["open/a", "open/b", "open/b"]) {
        const uploading = store.putLarge(key, file.path);
        await assert.rejects(uploading, faultWith("store_failed", { outcomeUnknown: true }));
      }
      remove();
      assert.equal(proxy.counts.abort, 0);
      const { entries } = await store.listUploads("open/");
      assert.deepEqual(
        entries.map(({ key }) => key),
        ["open/a", "open/b", "open/b"],
      );
      for (const upload of entries) {
        assert.ok(Math.abs((upload.startedAt ?? 0) - store.now()) < HOUR_MS);
        await store.abortUpload(upload);
      }
      assert.deepEqual((await store.listUploads("open/")).entries, []);
    } finally {
      await file.remove();
    }
  });

  it("a list of uploads has pages, which MinIO can give", async () => {
    const minio = await startMinio();
    const faulty = await startS3Proxy(minio.endpoint);
    const other = openTestStore({ ...minio, endpoint: faulty.endpoint });
    const file = await randomFile(PART_BYTES + 1);
    try {
      faulty.inject(["complete"], { response: { status: 500, body: "" } });
      for (let each = 0; each < 3; each++) {
        await assert.rejects(other.putLarge("open", file.path), faultWith("store_failed"));
      }
      const found = new Set<string>();
      let from: string | undefined;
      let pages = 0;
      do {
        const page = await other.listUploads("open", { limit: 2, ...(from !== undefined && { from }) });
        for (const { uploadId } of page.entries) found.add(uploadId);
        from = page.next;
        pages++;
      } while (from !== undefined && pages < 5);
      assert.deepEqual([found.size, pages], [3, 2]);
    } finally {
      await file.remove();
      await other.close();
      await faulty.stop();
      await minio.stop();
    }
  });

  it("a file that changes during its upload is damaged, and does not appear", async () => {
    const file = await randomFile(2 * PART_BYTES);
    try {
      proxy.inject(["part"], { delayMs: 300 });
      const uploading = store.putLarge("changed", file.path);
      await until(() => proxy.counts.part > 0);
      await appendFile(file.path, "more");
      await assert.rejects(uploading, faultWith("damaged", { remedy: "final" }));
      await assert.rejects(store.head("changed"), faultWith("missing"));
      assert.equal(proxy.counts.abort, 1);
    } finally {
      await file.remove();
    }
  });

  it("wrong responses are damaged and never taken for an object", async () => {
    const headers = { etag: '"e"', "content-length": "7" };
    const cases = [
      { status: 200, headers: { "content-length": "7" }, body: "content" },
      { status: 200, headers: { etag: '"e"', "transfer-encoding": "chunked" }, body: "content" },
    ];
    for (const response of cases) {
      proxy.inject(["get"], { response }, 1);
      await assert.rejects(async () => textOf(await store.get("object")), faultWith("damaged"));
    }
    const range = { first: 2, length: 3 };
    for (const response of [
      { status: 200, headers, body: "content" },
      {
        status: 206,
        headers: { ...headers, "content-length": "3", "content-range": "bytes 3-5/7" },
        body: "ten",
      },
      {
        status: 206,
        headers: { ...headers, "content-length": "2", "content-range": "bytes 2-3/7" },
        body: "nt",
      },
      { status: 206, headers: { ...headers, "content-length": "3" }, body: "nte" },
    ]) {
      proxy.inject(["get"], { response }, 1);
      await assert.rejects(async () => textOf(await store.get("object", { range })), faultWith("damaged"));
    }
    proxy.inject(["list"], { response: { status: 200, body: "<html></html>" } }, 1);
    await assert.rejects(store.list(""), faultWith("damaged"));
  });

  it("clocks that are an hour apart are found by the Date header, and signatures hold", async () => {
    for (const offsetMs of [-HOUR_MS, HOUR_MS]) {
      const clock = { ...systemClock, now: () => Date.now() + offsetMs };
      const skewed = open({ clock });
      assert.equal(await textOf(await skewed.get("object")), "content");
      assert.ok(Math.abs(skewed.now() - Date.now()) < 60_000);
      const requests = proxy.counts.get;
      assert.equal(await textOf(await skewed.get("object")), "content");
      assert.equal(proxy.counts.get, requests + 1);
    }
  });

  it("a wrong Date in one response does no lasting harm", async () => {
    proxy.inject(["get"], { dateOffsetMs: 24 * HOUR_MS }, 1);
    const other = open();
    assert.equal(await textOf(await other.get("object")), "content");
    assert.equal(await textOf(await other.get("object")), "content");
    assert.ok(Math.abs(other.now() - Date.now()) < 60_000);
  });

  it("a missing permission is named, and wrong credentials and places are told apart", async () => {
    const as = (id: string, secret: string, more: Partial<S3Settings> = {}): ObjectStore =>
      open({ credentials: fixedCredentials(id, new Secret(secret)), ...more });
    const reader = as("READER", "reader-secret");
    assert.equal(await textOf(await reader.get("object")), "content");
    await assert.rejects(
      reader.put("a", Buffer.from("x")),
      faultWith("denied", { permission: "s3:PutObject" }),
    );
    await assert.rejects(
      as("WRITER", "writer-secret").delete("object"),
      faultWith("denied", {
        permission: "s3:DeleteObject",
        hint: "give the credentials the permission s3:DeleteObject",
      }),
    );
    await assert.rejects(as("NOBODY", "x").list(""), faultWith("credentials_refused"));
    await assert.rejects(as("READER", "another-secret").list(""), (error: Error) => {
      assert.ok(!JSON.stringify([error.message, error.stack, error]).includes("another-secret"));
      return faultWith("credentials_refused")(error);
    });
    await assert.rejects(open({ bucket: "another" }).list(""), faultWith("bucket_missing"));
    await assert.rejects(open({ region: "eu-west-3" }).list(""), faultWith("wrong_region"));
  });

  it("refused credentials are renewed once", async () => {
    const renewals: boolean[] = [];
    const good = fixedCredentials(server.accessKeyId, new Secret(server.secretAccessKey));
    const old = fixedCredentials(server.accessKeyId, new Secret("expired"));
    const current = (renew = false) => {
      renewals.push(renew);
      return renew ? good.current() : old.current();
    };
    assert.equal(await textOf(await open({ credentials: { current } }).get("object")), "content");
    assert.deepEqual(renewals, [false, true]);
    const never = open({ credentials: old });
    proxy.resetCounts();
    await assert.rejects(never.get("object"), faultWith("credentials_refused"));
    assert.equal(proxy.counts.get, 2);
  });

  it("transfers that hang do not delay control objects", async () => {
    const narrow = open({ bulkConnections: 2, controlConnections: 1 });
    proxy.inject(["get"], { stallAfterBytes: 1 }, 2);
    const hanging = [await narrow.get("object"), await narrow.get("object")];
    const control = await narrow.get("object", { traffic: "control" });
    assert.equal(await textOf(control), "content");
    await narrow.head("object");
    for (const each of hanging) if (each.modified) each.body.on("error", () => undefined).destroy();
  });

  it("streams a large object in little memory, as fast as its reader", async () => {
    const file = await randomFile(6 * PART_BYTES);
    try {
      await store.putLarge("slow", file.path);
      const found = await store.get("slow");
      assert.ok(found.modified);
      let largest = 0;
      const chunks: Buffer[] = [];
      for await (const chunk of found.body as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        largest = Math.max(largest, found.body.readableLength);
        if (chunks.length % 50 === 0) await sleep(1);
      }
      assert.ok(Buffer.concat(chunks).equals(file.bytes));
      assert.ok(largest < 2 << 20, `${largest} bytes were waiting`);
    } finally {
      await file.remove();
    }
  });

  it("counts: each operation is one request", async () => {
    const expected: Partial<Record<S3RequestKind, number>> = {
      get: 2,
      head: 1,
      put: 1,
      list: 1,
      uploads: 1,
      delete: 1,
    };
    const { etag } = await store.head("object");
    await textOf(await store.get("object"));
    await store.get("object", { ifNoneMatch: etag });
    await store.put("other", Buffer.from("x"));
    await store.list("");
    await store.listUploads("");
    await store.delete("other");
    for (const [kind, count] of Object.entries(expected))
      assert.equal(proxy.counts[kind as S3RequestKind], count, kind);
    proxy.resetCounts();
    const file = await randomFile(2 * PART_BYTES + 1);
    try {
      await store.putLarge("large", file.path);
      assert.deepEqual(
        [proxy.counts.create, proxy.counts.part, proxy.counts.complete, proxy.counts.put],
        [1, 3, 1, 0],
      );
    } finally {
      await file.remove();
    }
  });
});
