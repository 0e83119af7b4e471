/** A row of a result by a pattern of its `what`, and the reason why it misses its target. */
type Reason = readonly [row: RegExp, text: string];

/**
 * Reasons for missed targets, by benchmark. They are kept apart from the figures, so that a reason can be corrected without
 * measuring again: `npm run bench -- --render` writes the pages. A reason explains its own row. It says what was tried, and
 * keeps apart what was measured, what is suspected, and what is not known.
 */
export const REASONS: Readonly<Record<string, readonly Reason[]>> = {
  clone: [
    [
      /^express: warm raw fetch, framed/,
      "Tried: sendfile(2) in the event loop's thread, without a hand-over (0046); one write for the log lines of a request; a larger young generation and kept bytecode, without a difference. sendfile(2) took the row from 6.7 to 4.4 ms on a busy machine (nginx 1.1). Of these 4.4 ms it takes 0.7, about as much as in nginx. The rest is one request on a new connection in Node: a third of it in node:http and node:net, a seventh in the garbage collector, a seventh in log lines, and no function above 2 %. Requests without a pause on one connection take 0.4 ms (requests.md). Suspected, not measured: the curl between two requests displaces the caches of the processor.",
    ],
    [
      /^large: warm raw fetch, framed/,
      "Tried: sendfile(2) in a thread (0046), and cachestat(2) in place of mincore(2), which took 4 ms for 141 MB. In the way: a request on a new connection takes 1 to 3 ms of JavaScript, and the thread that sends must be woken and reports back.",
    ],
    [
      /^large: warm raw fetch, second use/,
      "Tried: the framed file is written after the response was sent, no longer at the same time (0047). In the way: 141 MB are read from the pack, compared and written in slices, which takes 0.1 s. The rest is not known; the runs differ by more than half. Not built: sendfile(2) with a header for each 65,515 bytes takes 2.1 times what nginx takes. It needs the packet layout in the thread that sends, and the times of the pack at its last comparison, which are known of response files only.",
    ],
    [
      /whole clone, server CPU$/,
      "Tried: connections to the code host are reused, responses of ls-refs are relayed, the pack is sent by sendfile(2) without a thread (0046). A whole clone is three requests on one new connection, and two of them are relayed. The fetch alone takes a quarter of the row (the raw fetch above). Where the rest goes is not known. Suspected, not measured: git's index-pack displaces the caches of the processor between two clones.",
    ],
    [
      /shared cores: cold clone, wall$/,
      "Tried: nothing is parsed while the only transfer is under way, and the threads of the fill rest while other programs wait for the CPU (0037). In the way: each byte passes through one more process, which takes its CPU from the client's index-pack. How much of the miss this explains was not measured. The runs of express differ by a third, which is as much as the miss.",
    ],
    [
      /separate cores: cold clone, wall$/,
      "Not known. The client has a core of its own here, so the service does not take its CPU. Tried: nothing is parsed while the only transfer is under way, and the fill begins when the client has its whole response (0037). A trial with curl on a busy machine (express, medians of 3): the first byte comes 28 ms later than without the service, and the last byte 21 ms later. So the relay of the bytes costs nothing here, and the first byte explains about a third of the difference for express. Where the rest goes is not known, and large was not tried.",
    ],
    [
      /warm clone, right after a cold one, wall$/,
      "Tried: the threads of the fill rest while other programs wait for the CPU (0037). In the way: the client's own index-pack is nearly all of a clone's wall time, so little can be saved, and the rest of the fill uses the same cores.",
    ],
  ],
  object: [
    [
      /hit from the local tier, CPU$/,
      "Not known. A hit makes no request to the bucket (tests count them). With a bucket the process has more timers and notes each use in memory. The runs of each kind differ by a tenth or more, which is more than the miss; the kernel counts CPU in ticks of 10 ms, so a sample of 20 requests has steps of 0.5 ms. Not tried: more requests in a sample.",
    ],
    [
      /first hit of an empty instance, wall$/,
      "In the way: the manifest and the list of slices are two requests before the first byte, and each slice of 1 MiB is hashed before it goes out, so that the client gets no wrong byte. The relay sends first and hashes behind. How much of the miss each takes was not measured. The runs differ by a third and more.",
    ],
    [
      /first hit of an empty instance, wall, next to the code host$/,
      "In the way: the code host of the benchmark sends ready bytes over loopback, without the network and the load of a real one. The bucket is on the same two cores, and its bytes pass versitygw and are hashed and written. So it cannot be reached here: the bare relay alone takes 0.8 to 1.0 of the code host's time.",
    ],
    [
      /memory above idle$/,
      "The runs of large take 78 to 87 MB. At most 4 MiB wait for a slow client (a unit test). Suspected, not measured: freed buffers of the connection, which V8 gives back later. Not tried: reading into memory that is used again.",
    ],
    [
      /^upload of a response of 100 MB, CPU$/,
      "Tried: each byte is hashed once, for its slice and for the signature of its part; the checksums of the slices are the object's own. Measured alone in Node for 100 MB: SHA-256 57 ms, the CRC by which damage of the disk is found 24 ms, a copy into new memory 70 ms. The rest is the copy into the connection. Not tried: reading into memory that is used again.",
    ],
  ],
  fill: [
    [
      /^express: CPU from the first byte until idle, against the limit$/,
      "A fill that does not rest takes 1.4 to 1.5 s on a busy machine: indexing and check 0.65, the serving thread 0.35 (it writes the response, reads it and writes the pack), V8's threads 0.4 to 0.65, half of it TurboFan. Tried: one reading less and one buffer for the pack (0050); ids sorted as numbers. Without TurboFan it takes 1.2 to 1.4 s, but blob:none then takes 1.4 times as much CPU in each request. In the way: each fill compiles the thread's code again.",
    ],
    [
      /^large: CPU from the first byte until idle$/,
      "A fill that does not rest takes 6.8 s on a busy machine: indexing 3.1, check and bitmaps 1.4, the serving thread 0.9 (it writes the response, reads it and writes the pack), V8's threads 1.2. Tried: one reading less and one buffer for the pack (0050); ids sorted as numbers; without TurboFan it takes as much. In the way: indexing and check alone take 0.7 of git index-pack.",
    ],
    [
      /peak memory, cold clone and fill$/,
      "The peak is reached while the pack is indexed and its bitmaps are made. Tried: a pack of more than 50,000 objects gets two threads, one after the other, because memory of a thread is released only at its end (0050).",
    ],
    [
      /resident a minute after the work$/,
      "Not known. The threads of the fill end 10 s after their work (0050), and freed memory is returned to the system. Index, commit-graph and bitmaps of the mirror stay open; their share was not measured.",
    ],
  ],
  "many-wants": [
    [
      /, first, server CPU$/,
      "Tried: an object whose base is not sent becomes a delta on another object of its chain, which took this row from 4 to about 1. Measured on a loaded machine: runs of the same code gave 0.5 to 1.3. In the way: an object without a base at the client is deflated again, as a whole. The rest is not known.",
    ],
  ],
  kinds: [
    [
      /100 commits behind, first/,
      "Tried: bitmaps instead of walks, stored deltas reused, deflate with one handle. The engine takes 1.7 ms for such a response of express in a process that has worked (git-store-serve.md), and the same request repeated takes 3 ms with all that belongs to a request. Where the rest of the row goes, more than half of it, is not known. Suspected, not measured: V8 has not optimized code that has run for a dozen requests only.",
    ],
    [
      /depth 1, first/,
      "Tried: short objects are deflated with one handle, stored deltas are reused. In the way: deltas against objects that are not part of the answer must be inflated and deflated again, as git does.",
    ],
    [
      /blob:none, first/,
      "Tried: stored entries are copied in windows. In the way: blobs lie between the commits and trees of a pack, so that an answer has many short windows, each with its own copy and checksum.",
    ],
    [
      /, repeated, server CPU$/,
      "Tried: stored responses are sent from memory. In the way: one request on a new connection takes about 3 ms of CPU in Node, as the repeated fetch of 100 commits (0.3 MB) shows. For express this is most of the limit, and the 3.5 MB of blob:none are sent in addition.",
    ],
    [
      /healthz while three clients fetch depth 1/,
      "Tried: content is deflated in the thread pool when a step has taken about a millisecond. Suspected, not measured: three clients and the threads of the service share two cores, and take the CPU that the event loop needs.",
    ],
  ],
  overload: [
    [
      /^clients elsewhere: incremental fetch, p99$/,
      "Tried: slices of 2 ms in place of 4 for responses that are made, because each step of a small request waits for one. Both were compared in turn, without a measurable effect. In this run the `fetch` alone was as quick as a Node server that does nothing but respond (the row below); in a later one it took 16 ms and that server 5. In the way: the `ls-refs`, for which the code host starts three processes on the same cores. In the later run the code host alone, asked past the service, took 69 ms, and with priority for its processes a whole fetch took 43 ms, 1.3 times the idle time of that run. How much of the service's part is its own threads was not measured.",
    ],
    [
      /^clients on the same cores: incremental fetch, p99$/,
      "In the way: index-pack of the clients, with a thread for each core. As long as only curl receives, the value is about that of clients elsewhere. Then each of the three processes that the code host starts for an ls-refs waits for a core, and so does a Node server that does nothing but respond. The service has no work then, and cannot give the clients less CPU.",
    ],
  ],
  concurrent: [
    [
      /^express: 20 concurrent, warm, server CPU per clone$/,
      "Tried: sendfile(2) for large responses (0046). In the way: one request on a new connection in Node. A single fetch alone takes more than this limit (clone.md: the raw fetch). Why concurrent fetches take more than single ones is not known.",
    ],
    [
      /^large: 8 concurrent, warm, server CPU per clone$/,
      "Not known. The fixed cost of a request (0.4 to 4 ms) is a small part of it. A single fetch takes little more than half of it, while nginx takes less with eight clients than with one (clone.md). Tried: sendfile(2) in a thread, 4 MiB for each client in turn (0046). Suspected, not measured: with eight clients on two cores the thread wakes more often, for fewer bytes each time.",
    ],
    [
      /500 slow readers, CPU$/,
      "Not known. Tried: one thread sends to all readers with poll(2) and sendfile(2), without a buffer for each (0046). Suspected, not measured: the thread wakes for each piece that a socket takes, and poll(2) looks at all 500 descriptors each time.",
    ],
    [
      /500 slow readers, kilobytes for each$/,
      "Tried: sendfile(2) from one file, without a buffer for each client (0046). In the way: a socket and a request in Node take memory, and the collector frees it later.",
    ],
    [
      /200 concurrent, cold, last byte of the last$/,
      "Tried: all cold clients share one transfer, and read what is stored of it. In the way: bytes that are still arriving are sent in slices and not by sendfile(2). For 10 MB, slices take about 2 ms more CPU than sendfile(2) (0046), so 0.4 s for 200 clients, which share the two cores with the service. This is an estimate, not a measurement of this row.",
    ],
    [
      /200 concurrent, warm, throughput$/,
      "In the way: 200 clients share two cores with the service, and curl itself takes most of them.",
    ],
    [
      /concurrent, warm, peak memory$/,
      "Tried: slices of stored responses are shared by all clients, and threads end when they are idle. In the way: V8 and the allocator keep memory of the fill for a while after it.",
    ],
  ],
  "many-refs": [
    [
      /peak memory$/,
      "Tried: equal requests and refs that arrive together are kept once, and refs that were shown before are not made again. In the way: forty responses are on their way concurrently, and V8 and the allocator keep for a while what they took.",
    ],
    [
      /memory a minute later$/,
      "The refs of the repository stay in memory, in two maps by name and by object: about 25 MB. What the rest is, is not known. Suspected, not measured: memory that V8 gives back slowly.",
    ],
  ],
  requests: [
    [
      /^small answer/,
      "Tried: a file that was open a moment ago is opened without the thread pool, and keys are hashed in one call: 0.8 to 0.4 ms. What is left is spread: no function takes more than 2 %. The log and the audit have two lines for each request, which are written together: about a twentieth of the time. Heads are not prepared yet.",
    ],
  ],
  "svc-start": [
    [
      /^svc serve on \w+, sources/,
      "Node's own modules take 60 ms to compile and 40 ms to load, and the types of 800 source files are removed in each process. Postgres adds its driver and a connection. Not tried: fewer modules. The release meets the target.",
    ],
    [
      /^svc serve on \w+, release/,
      "Node's own modules take 60 ms to compile and 40 ms to load. Tried: the release loads only the parts of node:http, undici and prom-client that it uses, a quarter less than before.",
    ],
    [
      /^release: start to the last byte of the first hit/,
      "Tried: the release loads a quarter less than before, and opens the mirror a second later. Node's own modules take 100 ms, garbage collection 50 ms. Flags of V8, CPU as medians of nine starts on a busy machine, none: 350 ms. A first young generation of 4 MB: 310. A first old generation of 64 MB: 330. Collections in one thread: 350. No certificates of the system: 330. No optimizing compilers: 320, but a warm process then takes up to 1.4 times as much CPU to serve.",
    ],
    [
      /^release: idle memory, 10 s after/,
      "54 MB are the program node itself. Tried: malloc_trim gave 1 MB. Flags of V8, medians of nine starts on a busy machine, none: 113 MB. A first young generation of 4 MB: 117. A first old generation of 64 MB: 116. Collections in one thread: 110. No optimizing compilers: 106, but a warm process then takes up to 1.4 times as much CPU to serve.",
    ],
  ],
};

/** Reason of a missed row; undefined: none is recorded. */
export function reasonOf(benchmark: string, what: string): string | undefined {
  return REASONS[benchmark]?.find(([row]) => row.test(what))?.[1];
}
